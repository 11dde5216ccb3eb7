"""Storage over gRPC, with the caller's own credentials."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import grpc.aio
from google.protobuf.timestamp_pb2 import Timestamp

from annals.storage.v1 import (
    conversation_service_pb2,
    conversation_service_pb2_grpc,
    event_service_pb2,
    event_service_pb2_grpc,
    resources_pb2,
    search_service_pb2,
    search_service_pb2_grpc,
    tenant_service_pb2,
    tenant_service_pb2_grpc,
)
from annals_context.clients.calling import call
from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.model import Hit
from annals_context.ports import (
    AgentFacts,
    Caller,
    ConversationFacts,
    Identity,
    RetrievalScope,
    SearchAnswer,
)
from annals_context.translation import EVENT_TYPE_NUMBERS, ROLE_NUMBERS, event_from

MAX_PAGE = 1_000


class GrpcStorage:
    """The storage service behind a channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._conversations = conversation_service_pb2_grpc.ConversationServiceStub(channel)
        self._events = event_service_pb2_grpc.EventServiceStub(channel)
        self._search = search_service_pb2_grpc.SearchServiceStub(channel)
        self._tenants = tenant_service_pb2_grpc.TenantServiceStub(channel)

    async def identify(self, caller: Caller) -> Identity:
        """Return whose the credentials are."""
        request = tenant_service_pb2.GetCallerRequest()
        response = await call(self._tenants.GetCaller, request, caller)
        kind = resources_pb2.API_KEY_KIND_PUBLISHABLE
        return Identity(
            response.tenant_id,
            is_publishable=response.kind == kind,
            agent_id=response.agent_id,
            user_id=response.user_id,
            session_id=response.session_id,
        )

    async def get_conversation(self, caller: Caller, conversation_id: str) -> ConversationFacts:
        """Return the conversation."""
        request = conversation_service_pb2.GetConversationRequest(conversation_id=conversation_id)
        response = await call(self._conversations.GetConversation, request, caller)
        found = response.conversation
        return ConversationFacts(
            conversation_id=found.conversation_id,
            agent_id=found.agent_id,
            event_count=found.event_count,
            version=found.version,
            current_branch=found.current_branch,
            title=found.title,
            user_id=found.user_id,
            session_id=found.session_id,
        )

    async def get_agent(self, caller: Caller, agent_id: str) -> AgentFacts:
        """Return the agent."""
        request = tenant_service_pb2.GetAgentRequest(agent_id=agent_id)
        response = await call(self._tenants.GetAgent, request, caller)
        return AgentFacts(response.agent.system_prompt, response.agent.model)

    async def list_newest(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        limit: int,
        roles: Sequence[Role] = (),
    ) -> list[Event]:
        """Return the newest events of a branch (0: the current one), newest first."""
        request = event_service_pb2.ListEventsRequest(
            conversation_id=conversation_id,
            branch=branch,
            roles=[ROLE_NUMBERS[role] for role in roles],
            order=event_service_pb2.SORT_ORDER_DESCENDING,
            page_size=min(limit, MAX_PAGE),
        )
        response = await call(self._events.ListEvents, request, caller)
        return [event_from(event) for event in response.events]

    async def list_between(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        after_seq: int,
        before_seq: int,
        types: Sequence[EventType],
    ) -> list[Event]:
        """Return the events strictly between two positions, oldest first."""
        request = event_service_pb2.ListEventsRequest(
            conversation_id=conversation_id,
            branch=branch,
            after_seq=after_seq,
            before_seq=before_seq,
            types=[EVENT_TYPE_NUMBERS[item] for item in types],
            page_size=MAX_PAGE,
        )
        response = await call(self._events.ListEvents, request, caller)
        return [event_from(event) for event in response.events]

    async def search(
        self,
        caller: Caller,
        conversation_id: str,
        query: str,
        *,
        branch: int,
        limit: int,
        read_your_writes: bool,
    ) -> SearchAnswer:
        """Search a branch of one conversation."""
        request = search_service_pb2.SearchEventsRequest(
            query=query,
            filter=search_service_pb2.SearchFilter(
                conversation_ids=[conversation_id], branch=branch
            ),
            limit=limit,
            freshness=search_service_pb2.SEARCH_FRESHNESS_READ_YOUR_WRITES
            if read_your_writes
            else search_service_pb2.SEARCH_FRESHNESS_EVENTUAL,
        )
        return _answer(await call(self._search.SearchEvents, request, caller))

    async def search_scope(
        self, caller: Caller, query: str, scope: RetrievalScope, *, limit: int
    ) -> SearchAnswer:
        """Search the conversations of a scope, each on its current branch."""
        where = search_service_pb2.SearchFilter(
            conversation_ids=scope.conversation_ids,
            agent_ids=[scope.agent_id] if scope.agent_id else [],
            user_id=scope.user_id,
            session_id=scope.session_id,
            start_time=_stamp(scope.start_time),
            end_time=_stamp(scope.end_time),
        )
        request = search_service_pb2.SearchEventsRequest(query=query, filter=where, limit=limit)
        return _answer(await call(self._search.SearchEvents, request, caller))


def _stamp(moment: datetime | None) -> Timestamp | None:
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp


def _answer(response: search_service_pb2.SearchEventsResponse) -> SearchAnswer:
    hits = (Hit(event_from(h.event), h.score, h.chunk_start, h.chunk_end) for h in response.hits)
    return SearchAnswer(tuple(hits), tuple(response.degraded))
