"""ContextService: what bears on a query, in one conversation and across many."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from annals.context.v1 import context_service_pb2 as pb
from annals.context.v1 import resources_pb2
from annals_common.errors import FieldInvalidError
from annals_common.validation import (
    bounded,
    check_response_size,
    enum,
    optional_uuid,
    require_text,
    require_uuid,
    text,
    timestamp,
    uuids,
)
from annals_context.commands.across import AcrossWanted, GetContextFromAllConversations, Shared
from annals_context.commands.preparing import MAX_QUERY_CHARS
from annals_context.commands.snippets import GetRelevantSnippets, SnippetsWanted
from annals_context.commands.whole_events import EventsWanted, SearchAndRetrieve
from annals_context.domain.handles import EventHandle
from annals_context.domain.model import Hit
from annals_context.domain.passages import Passage
from annals_context.handlers.access import current_caller
from annals_context.handlers.context import MAX_BUDGET_TOKENS, MAX_MODEL_CHARS
from annals_context.handlers.enums import CONVERSATION_SCOPES, SNIPPET_STRATEGIES
from annals_context.handlers.output import counter_message
from annals_context.ports import RetrievalScope
from annals_context.translation import stored_event_message

SNIPPET_TOKENS = 1_000
EVENT_TOKENS = 4_000
ACROSS_TOKENS = 2_000
MAX_EVENTS, EVENTS = 100, 20
MAX_SNIPPETS, SNIPPETS = 100, 5
MAX_CONVERSATIONS, CONVERSATIONS = 20, 10
MAX_SCOPE_IDS = 100
MAX_OWNER_CHARS = 256


class RetrievalHandler:
    """Translates; the use cases are in commands."""

    def __init__(
        self,
        snippets: GetRelevantSnippets,
        events: SearchAndRetrieve,
        across: GetContextFromAllConversations,
    ) -> None:
        self._snippets, self._events, self._across = snippets, events, across

    async def GetRelevantSnippets(
        self, request: pb.GetRelevantSnippetsRequest, context: Any
    ) -> pb.GetRelevantSnippetsResponse:
        found = await self._snippets(current_caller(context), _snippets_wanted(request))
        fitted = found.fitted
        response = pb.GetRelevantSnippetsResponse(
            text=fitted.text,
            total_tokens=fitted.total_tokens,
            counter=counter_message(fitted.counter),
            snippets=[message for group in fitted.groups for message in _messages(group.passages)],
            degraded=found.degraded,
        )
        check_response_size(response, "max_tokens")
        return response

    async def SearchAndRetrieve(
        self, request: pb.SearchAndRetrieveRequest, context: Any
    ) -> pb.SearchAndRetrieveResponse:
        found = await self._events(current_caller(context), _events_wanted(request))
        response = pb.SearchAndRetrieveResponse(
            events=[_retrieved_message(hit, tokens) for hit, tokens in found.hits],
            total_tokens=sum(tokens for _, tokens in found.hits),
            counter=counter_message(found.counter),
            omitted_handles=[_handle(hit) for hit in found.omitted],
            degraded=found.degraded,
        )
        check_response_size(response, "max_tokens")
        return response

    async def GetContextFromAllConversations(
        self, request: pb.GetContextFromAllConversationsRequest, context: Any
    ) -> pb.GetContextFromAllConversationsResponse:
        found = await self._across(current_caller(context), _across_wanted(request))
        fitted = found.fitted
        groups = [
            resources_pb2.ConversationSnippets(
                conversation_id=group.conversation_id,
                title=found.titles.get(group.conversation_id, ""),
                snippets=_messages(group.passages),
            )
            for group in fitted.groups
        ]
        response = pb.GetContextFromAllConversationsResponse(
            text=fitted.text,
            total_tokens=fitted.total_tokens,
            counter=counter_message(fitted.counter),
            conversations=groups,
            degraded=found.degraded,
        )
        check_response_size(response, "max_tokens")
        return response


def _snippets_wanted(request: pb.GetRelevantSnippetsRequest) -> SnippetsWanted:
    return SnippetsWanted(
        query=_query(request.query),
        max_tokens=_number(request.max_tokens, "max_tokens", MAX_BUDGET_TOKENS, SNIPPET_TOKENS),
        strategy=enum(request.strategy, SNIPPET_STRATEGIES, "strategy"),
        with_neighbours=request.expand_context if request.HasField("expand_context") else True,
        scope=_scope(request.scope),
        model=text(request.model, "model", max_chars=MAX_MODEL_CHARS),
    )


def _events_wanted(request: pb.SearchAndRetrieveRequest) -> EventsWanted:
    return EventsWanted(
        query=_query(request.query),
        most_events=_number(request.auto_limit, "auto_limit", MAX_EVENTS, EVENTS),
        max_tokens=_number(request.max_tokens, "max_tokens", MAX_BUDGET_TOKENS, EVENT_TOKENS),
        scope=_scope(request.scope),
        model=text(request.model, "model", max_chars=MAX_MODEL_CHARS),
    )


def _across_wanted(request: pb.GetContextFromAllConversationsRequest) -> AcrossWanted:
    shared = enum(request.scope, CONVERSATION_SCOPES, "scope")
    in_hand = optional_uuid(request.conversation_id, "conversation_id")
    if in_hand is None and shared is not Shared.TENANT:
        raise FieldInvalidError("conversation_id", "is required unless scope is TENANT")
    return AcrossWanted(
        conversation_id=str(in_hand or ""),
        shared=shared,
        query=_query(request.query),
        max_tokens=_number(request.max_tokens, "max_tokens", MAX_BUDGET_TOKENS, ACROSS_TOKENS),
        snippets_per_conversation=_number(
            request.snippets_per_conversation, "snippets_per_conversation", MAX_SNIPPETS, SNIPPETS
        ),
        most_conversations=_number(request.limit, "limit", MAX_CONVERSATIONS, CONVERSATIONS),
        model=text(request.model, "model", max_chars=MAX_MODEL_CHARS),
    )


def _query(value: str) -> str:
    return require_text(value, "query", max_chars=MAX_QUERY_CHARS)


def _number(value: int, field: str, high: int, default: int) -> int:
    """Return a number from 1 to `high`; 0 means the default."""
    bounded(value, field, low=0, high=high)
    return value or default


def _scope(scope: resources_pb2.RetrievalScope) -> RetrievalScope:
    ids = uuids(scope.conversation_ids, "scope.conversation_ids", max_items=MAX_SCOPE_IDS)
    start, end = _times(scope)
    return RetrievalScope(
        conversation_ids=tuple(map(str, ids)),
        agent_id=str(require_uuid(scope.agent_id, "scope.agent_id")) if scope.agent_id else "",
        user_id=text(scope.user_id, "scope.user_id", max_chars=MAX_OWNER_CHARS),
        session_id=text(scope.session_id, "scope.session_id", max_chars=MAX_OWNER_CHARS),
        start_time=start,
        end_time=end,
    )


def _times(scope: resources_pb2.RetrievalScope) -> tuple[datetime | None, datetime | None]:
    start = (
        timestamp(scope.start_time, "scope.start_time") if scope.HasField("start_time") else None
    )
    end = timestamp(scope.end_time, "scope.end_time") if scope.HasField("end_time") else None
    if start is not None and end is not None and end <= start:
        raise FieldInvalidError("scope.end_time", "must be after scope.start_time", end.isoformat())
    return start, end


def _messages(passages: Iterable[Passage]) -> list[resources_pb2.Snippet]:
    return [_snippet_message(passage) for passage in passages]


def _snippet_message(passage: Passage) -> resources_pb2.Snippet:
    event = passage.event
    message = resources_pb2.Snippet(
        conversation_id=event.conversation_id,
        event_id=event.event_id,
        seq=event.seq,
        handle=str(EventHandle(event.seq, event.conversation_id)),
        start_char=passage.start_char,
        end_char=passage.end_char,
        text=passage.words,
        score=passage.score,
    )
    if event.event_time:
        message.event_time.FromDatetime(event.event_time)
    return message


def _retrieved_message(hit: Hit, tokens: int) -> resources_pb2.RetrievedEvent:
    return resources_pb2.RetrievedEvent(
        event=stored_event_message(hit.event), score=hit.score, handle=_handle(hit), tokens=tokens
    )


def _handle(hit: Hit) -> str:
    return str(EventHandle(hit.event.seq, hit.event.conversation_id))
