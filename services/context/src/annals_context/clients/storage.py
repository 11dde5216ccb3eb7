"""Storage over gRPC, with the caller's own credentials."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

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
from annals_common.errors import DeadlineExceededError
from annals_common.interceptors.observe import REQUEST_ID_METADATA_KEY
from annals_common.upstream import from_rpc_error
from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.model import Hit
from annals_context.index_translation import choices_from
from annals_context.ports import AgentFacts, Caller, ConversationFacts, Identity, SearchAnswer
from annals_context.translation import EVENT_TYPE_NUMBERS, ROLE_NUMBERS, event_from

SERVICE = "storage"
MAX_PAGE = 1_000

T = TypeVar("T")


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
        response = await _call(self._tenants.GetCaller, request, caller)
        kind = resources_pb2.API_KEY_KIND_PUBLISHABLE
        return Identity(response.tenant_id, is_publishable=response.kind == kind)

    async def get_conversation(self, caller: Caller, conversation_id: str) -> ConversationFacts:
        """Return the conversation."""
        request = conversation_service_pb2.GetConversationRequest(conversation_id=conversation_id)
        response = await _call(self._conversations.GetConversation, request, caller)
        found = response.conversation
        return ConversationFacts(
            conversation_id=found.conversation_id,
            agent_id=found.agent_id,
            event_count=found.event_count,
            version=found.version,
        )

    async def get_agent(self, caller: Caller, agent_id: str) -> AgentFacts:
        """Return the agent."""
        request = tenant_service_pb2.GetAgentRequest(agent_id=agent_id)
        response = await _call(self._tenants.GetAgent, request, caller)
        agent = response.agent
        return AgentFacts(agent.system_prompt, agent.model, choices_from(agent.index_config))

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
        response = await _call(self._events.ListEvents, request, caller)
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
        response = await _call(self._events.ListEvents, request, caller)
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
        response = await _call(self._search.SearchEvents, request, caller)
        hits = tuple(
            Hit(event_from(h.event), h.score, h.chunk_start, h.chunk_end) for h in response.hits
        )
        return SearchAnswer(hits, tuple(response.degraded))


async def _call(method: Callable[..., Awaitable[T]], request: Any, caller: Caller) -> T:
    if caller.timeout_s is not None and caller.timeout_s <= 0:
        raise DeadlineExceededError
    metadata = (
        ("authorization", caller.authorization),
        (REQUEST_ID_METADATA_KEY, caller.request_id),
        *caller.end_user,
    )
    try:
        return await method(request, metadata=metadata, timeout=caller.timeout_s)
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error, SERVICE) from error
