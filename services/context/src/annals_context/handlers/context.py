"""ContextService."""

from __future__ import annotations

from typing import Any, NamedTuple

from annals.context.v1 import context_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.settings import MEBIBYTE
from annals_common.validation import (
    bounded,
    check_response_size,
    enum,
    long_text,
    plain_text,
    require_uuid,
    text,
)
from annals_context.commands.cached_preparing import CachedContexts
from annals_context.commands.drilling import DrillDown
from annals_context.commands.preparing import MAX_QUERY_CHARS, Prepare
from annals_context.handlers.access import current_caller, current_identity
from annals_context.handlers.enums import FORMATS, STRATEGIES
from annals_context.handlers.output import add_reuse, prepared_response


class Choice(NamedTuple):
    """What an optional number may be, and what it is when absent."""

    low: int
    high: int
    default: int


MAX_BUDGET_TOKENS = 10_000_000
MAX_MODEL_CHARS = 200
MAX_VERSION_CHARS = 64
MAX_BRANCH = 2**31 - 1
RECENT_EVENTS = Choice(low=1, high=1_000, default=10)
RELEVANT_EVENTS = Choice(low=0, high=1_000, default=50)
TOKENS_PER_RELEVANT_EVENT = 20
MOST_RELEVANT_BY_DEFAULT = 200
SNIPPET_CHARS = Choice(low=1, high=10_000, default=100)


class ContextHandler:
    """Translates; the use case is commands.preparing, behind commands.cached_preparing."""

    def __init__(self, prepare: CachedContexts, drill: DrillDown) -> None:
        self._prepare, self._drill = prepare, drill

    async def PrepareContext(
        self, request: pb.PrepareContextRequest, context: Any
    ) -> pb.PrepareContextResponse:
        wanted = _prepare(request)
        served = await self._prepare(current_caller(context), wanted, _previous_version(request))
        response = prepared_response(served.prepared, wanted)
        add_reuse(response, served.reuse)
        response.view = self._drill.view_of(current_identity(), wanted, served.prepared)
        check_response_size(response, "budget_tokens")
        return response


def _prepare(request: pb.PrepareContextRequest) -> Prepare:
    _check_budget(request)
    bounded(request.branch, "branch", low=0, high=MAX_BRANCH)
    return Prepare(
        conversation_id=str(require_uuid(request.conversation_id, "conversation_id")),
        budget_tokens=request.budget_tokens,
        response_reserve_tokens=request.response_reserve_tokens,
        query=text(request.query, "query", max_chars=MAX_QUERY_CHARS),
        current_message=long_text(request.current_message, "current_message", max_bytes=MEBIBYTE),
        model=text(request.model, "model", max_chars=MAX_MODEL_CHARS),
        payload_format=enum(request.format, FORMATS, "format"),
        strategy=enum(request.strategy, STRATEGIES, "strategy"),
        recent_events=_chosen(request, "recent_events", RECENT_EVENTS),
        relevant_events=_chosen(request, "relevant_events", _relevant_choice(request)),
        snippet_chars=_chosen(request, "snippet_chars", SNIPPET_CHARS),
        include_tool_calls=request.include_tool_calls
        if request.HasField("include_tool_calls")
        else True,
        read_your_writes=request.read_your_writes,
        branch=request.branch,
    )


def _previous_version(request: pb.PrepareContextRequest) -> str:
    version = request.previous_context_version
    field = "previous_context_version"
    return plain_text(version, field, max_chars=MAX_VERSION_CHARS) if version else ""


def _check_budget(request: pb.PrepareContextRequest) -> None:
    bounded(request.budget_tokens, "budget_tokens", low=1, high=MAX_BUDGET_TOKENS)
    if not 0 <= request.response_reserve_tokens < request.budget_tokens:
        raise FieldInvalidError(
            "response_reserve_tokens",
            f"must be at least 0 and less than budget_tokens ({request.budget_tokens})",
            request.response_reserve_tokens,
        )


def _relevant_choice(request: pb.PrepareContextRequest) -> Choice:
    """By default, as many as a larger budget could hold: the search decides what is found."""
    by_budget = request.budget_tokens // TOKENS_PER_RELEVANT_EVENT
    default = min(MOST_RELEVANT_BY_DEFAULT, max(RELEVANT_EVENTS.default, by_budget))
    return RELEVANT_EVENTS._replace(default=default)


def _chosen(request: pb.PrepareContextRequest, field: Any, choice: Choice) -> int:
    if not request.HasField(field):
        return choice.default
    value: int = getattr(request, field)
    bounded(value, field, low=choice.low, high=choice.high)
    return value
