"""What a context does without when storage is partly down, and how it says so.

`TolerantStorage` answers in place of calls that fail and could be done without; `WithFallbacks`
collects what it left out while one context is assembled. The conversation itself is never left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from annals_common.errors import (
    AnnalsError,
    DeadlineExceededError,
    DependencyUnavailableError,
)
from annals_context.commands.preparing import Prepare, Prepared
from annals_context.domain.events import Event, EventType, Role
from annals_context.ports import (
    AgentFacts,
    Caller,
    ConversationFacts,
    Identity,
    SearchAnswer,
    Storage,
)

TIMEOUT_SECONDS = 3.0
AGENT_SHARE = 0.5
LIST_SHARE = 0.4
FEW_SHARE = 0.2
PARTNER_SHARE = 0.2
"""Of the time left, how much one call may use: what takes its place needs time as well."""
FEW_EVENTS = 10
"""The newest of a conversation are read more surely than all: no cold storage is behind them."""
AGENT = "agent"
OLDER_EVENTS = "older_events"
RECENT_EVENTS = "recent_events"
TOOL_PAIRS = "tool_pairs"
_REASONS = frozenset({DependencyUnavailableError.reason, DeadlineExceededError.reason})


@dataclass(slots=True)
class _LeftOut:
    """What one context does without. `error`: why its newest events could not be listed."""

    reasons: dict[str, None] = field(default_factory=dict)
    event_count: int = 0
    error: AnnalsError | None = None


_left_out: ContextVar[_LeftOut] = ContextVar("annals_left_out")


class WithFallbacks:
    """Wraps a use case over a `TolerantStorage`."""

    def __init__(self, prepare: Callable[[Caller, Prepare], Awaitable[Prepared]]) -> None:
        self._prepare = prepare

    async def __call__(self, caller: Caller, request: Prepare) -> Prepared:
        """Return what can be had. Raises what the use case raises, and when there is nothing."""
        left_out = _LeftOut()
        token = _left_out.set(left_out)
        try:
            prepared = await self._prepare(caller, request)
        finally:
            _left_out.reset(token)
        shown = sum(1 for item in prepared.context.items if item.seq)
        if left_out.error is not None and not shown:
            raise left_out.error
        if not left_out.reasons:
            return prepared
        return _named(prepared, left_out, shown)


def _named(prepared: Prepared, left_out: _LeftOut, shown: int) -> Prepared:
    reasons = tuple(dict.fromkeys((*prepared.degraded, *left_out.reasons)))
    # Where few events were listed in place of all, the conversation seems to have no others.
    omitted = max(prepared.context.omitted_events, left_out.event_count - shown)
    context = replace(prepared.context, omitted_events=omitted)
    return replace(prepared, context=context, degraded=reasons)


class TolerantStorage:
    """Storage, with less in place of what fails or takes too long."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def identify(self, caller: Caller) -> Identity:
        """Return whose the credentials are. Raises for invalid ones."""
        return await self._storage.identify(caller)

    async def get_conversation(self, caller: Caller, conversation_id: str) -> ConversationFacts:
        """Return the conversation. Raises when it cannot be read."""
        found = await self._storage.get_conversation(caller, conversation_id)
        _left_out.get().event_count = found.event_count
        return found

    async def get_agent(self, caller: Caller, agent_id: str) -> AgentFacts:
        """Return the agent, or one that says nothing."""
        try:
            return await self._storage.get_agent(_within(caller, AGENT_SHARE), agent_id)
        except AnnalsError as error:
            _leave_out(AGENT, error)
            return AgentFacts()

    async def list_newest(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        limit: int,
        roles: Sequence[Role] = (),
    ) -> list[Event]:
        """Return the newest events, only a few of them, or none."""
        few = min(limit, FEW_EVENTS)
        attempts = ((OLDER_EVENTS, limit, LIST_SHARE), (RECENT_EVENTS, few, FEW_SHARE))
        for reason, wanted, share in attempts:
            try:
                return await self._storage.list_newest(
                    _within(caller, share),
                    conversation_id,
                    branch=branch,
                    limit=wanted,
                    roles=roles,
                )
            except AnnalsError as error:
                _leave_out(reason, error)
                last = error
        _left_out.get().error = last
        return []

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
        """Return the events between two positions, or none."""
        try:
            return await self._storage.list_between(
                _within(caller, PARTNER_SHARE),
                conversation_id,
                branch=branch,
                after_seq=after_seq,
                before_seq=before_seq,
                types=types,
            )
        except AnnalsError as error:
            _leave_out(TOOL_PAIRS, error)
            return []

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
        """Search; who assembles does without by itself."""
        return await self._storage.search(
            caller,
            conversation_id,
            query,
            branch=branch,
            limit=limit,
            read_your_writes=read_your_writes,
        )


def _within(caller: Caller, share: float) -> Caller:
    left_s = TIMEOUT_SECONDS if caller.timeout_s is None else caller.timeout_s * share
    return replace(caller, timeout_s=min(TIMEOUT_SECONDS, left_s))


def _leave_out(reason: str, error: AnnalsError) -> None:
    """Note what is missing. Raises what is no outage: it would be the same without the outage."""
    if error.reason not in _REASONS:
        raise error
    _left_out.get().reasons[reason] = None
