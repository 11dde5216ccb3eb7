"""Prepares the context of one conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from annals_common.errors import AnnalsError, DeadlineExceededError, DependencyUnavailableError
from annals_context.commands.fetching import events_at
from annals_context.commands.together import first_error
from annals_context.domain.assembly import assemble
from annals_context.domain.counting import Counter
from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.model import (
    ContextRequest,
    DetailLevel,
    Hit,
    PayloadFormat,
    PreparedContext,
    StrategyName,
)
from annals_context.domain.pairing import unpaired_tool_call_ids
from annals_context.domain.snippets import best_sentence
from annals_context.domain.strategies import FULL_UP_TO_EVENTS
from annals_context.ports import AgentFacts, Caller, ConversationFacts, SearchAnswer, Storage

SEARCH_TIMEOUT_SECONDS = 5.0
SEARCH_SHARE = 0.6
"""Of the time left, how much the search may use: the rest must do without it."""
MAX_LISTED_EVENTS = 1_000
MAX_QUERY_CHARS = 32_768
"""What storage takes; the beginning of a longer message says enough."""
TOKENS_PER_INDEX_LINE = 20
"""A cautious guess, to fetch no more events than could be shown."""
PARTNER_REACH = 50
"""How far from a tool call its result is looked for, in events, and the other way round."""
MAX_PARTNER_LOOKUPS = 8
USER_MESSAGES_TO_LIST = 10
"""More than the one wanted: some may have failed."""
SEARCH_TIMEOUT = "search_timeout"
SEARCH_UNAVAILABLE = "search_unavailable"


@dataclass(frozen=True, slots=True)
class Prepare:
    """A validated request. `branch` 0: the current one. `pins`, `required`: see ContextRequest."""

    conversation_id: str
    budget_tokens: int
    response_reserve_tokens: int
    query: str
    current_message: str
    model: str
    payload_format: PayloadFormat
    strategy: StrategyName
    recent_events: int
    relevant_events: int
    snippet_chars: int
    include_tool_calls: bool
    read_your_writes: bool
    branch: int = 0
    pins: Mapping[int, DetailLevel] = field(default_factory=dict)
    required: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The context, and what it was made from. `branch`: the one prepared, never 0."""

    context: PreparedContext
    conversation_version: int
    degraded: tuple[str, ...]
    branch: int


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest events that belong in a context, newest first. `is_all`: there are no others."""

    events: tuple[Event, ...]
    is_all: bool


@dataclass(frozen=True, slots=True)
class _Material:
    conversation: ConversationFacts
    agent: AgentFacts
    newest: _Newest
    found: SearchAnswer
    expanded: tuple[Event, ...] = ()


class PrepareContext:
    """Asks storage for everything at once, then fits it into the budget."""

    def __init__(self, storage: Storage, counter_for: Callable[[str], Counter]) -> None:
        self._storage, self._counter_for = storage, counter_for

    async def __call__(self, caller: Caller, request: Prepare) -> Prepared:
        """Raises BudgetTooSmallError and what storage raises; a failed search only degrades."""
        material = await self._with_expanded(caller, request, await self._gather(caller, request))
        partners = await self._partners(caller, request, material)
        context_request = self._context_request(request, material, partners)
        # Counting and fitting take milliseconds of pure CPU: not on the event loop.
        context = await asyncio.to_thread(assemble, context_request)
        return Prepared(
            context,
            material.conversation.version,
            material.found.degraded,
            request.branch or material.conversation.current_branch,
        )

    async def _gather(self, caller: Caller, request: Prepare) -> _Material:
        async with first_error(), asyncio.TaskGroup() as tasks:
            facts = tasks.create_task(self._facts(caller, request))
            newest = tasks.create_task(self._newest(caller, request))
            found = tasks.create_task(self._search(caller, request, newest))
        conversation, agent = facts.result()
        return _Material(conversation, agent, newest.result(), found.result())

    async def _facts(
        self, caller: Caller, request: Prepare
    ) -> tuple[ConversationFacts, AgentFacts]:
        conversation = await self._storage.get_conversation(caller, request.conversation_id)
        if not conversation.agent_id:
            return conversation, AgentFacts()
        return conversation, await self._storage.get_agent(caller, conversation.agent_id)

    async def _newest(self, caller: Caller, request: Prepare) -> _Newest:
        """Return the newest events and, further back if need be, the newest user message."""
        limit = _events_to_list(request)
        found = await self._storage.list_newest(
            caller, request.conversation_id, branch=request.branch, limit=limit
        )
        is_all = len(found) < limit
        shown = _shown(found)
        if is_all or request.current_message or any(event.is_user_message for event in shown):
            return _Newest(tuple(shown), is_all)
        said = await self._storage.list_newest(
            caller,
            request.conversation_id,
            branch=request.branch,
            limit=USER_MESSAGES_TO_LIST,
            roles=[Role.USER],
        )
        return _Newest((*shown, *_shown(said)[:1]), is_all)

    async def _search(
        self, caller: Caller, request: Prepare, newest: asyncio.Task[_Newest]
    ) -> SearchAnswer:
        query = request.query or request.current_message
        query = query or _newest_user_words((await newest).events)
        query = query[:MAX_QUERY_CHARS].strip()
        if not query or not request.relevant_events:
            return SearchAnswer(())
        try:
            found = await self._storage.search(
                _within(caller, SEARCH_TIMEOUT_SECONDS),
                request.conversation_id,
                query,
                branch=request.branch,
                limit=request.relevant_events,
                read_your_writes=request.read_your_writes,
            )
        except DeadlineExceededError:
            return SearchAnswer((), (SEARCH_TIMEOUT,))
        except AnnalsError as error:
            if error.reason == DependencyUnavailableError.reason:
                return SearchAnswer((), (SEARCH_UNAVAILABLE,))
            raise
        hits = tuple(_focused(hit, query) for hit in found.hits if hit.event.belongs_in_context)
        return replace(found, hits=hits)

    async def _with_expanded(
        self, caller: Caller, request: Prepare, material: _Material
    ) -> _Material:
        """Add the expanded events that were neither listed nor found."""
        asked = {seq for seq, level in request.pins.items() if level is DetailLevel.FULL}
        seqs = asked.difference(event.seq for event in _distinct(material))
        if not seqs:
            return material
        found = await events_at(
            self._storage, caller, request.conversation_id, branch=request.branch, seqs=seqs
        )
        return replace(material, expanded=tuple(_shown(found)))

    async def _partners(self, caller: Caller, request: Prepare, material: _Material) -> list[Event]:
        """Fetch the calls and results whose other half is already there."""
        if not request.include_tool_calls:
            return []
        present = _distinct(material)
        alone = set(unpaired_tool_call_ids(present))
        halves = [event for event in present if event.tool_call_id in alone]
        # What a reader asked for must not miss its other half for want of look-ups.
        halves.sort(key=lambda event: event.seq not in request.pins)
        async with first_error(), asyncio.TaskGroup() as tasks:
            lookups = [
                tasks.create_task(self._around(caller, request, half))
                for half in halves[:MAX_PARTNER_LOOKUPS]
            ]
        nearby = [event for lookup in lookups for event in lookup.result()]
        return [event for event in _shown(nearby) if event.tool_call_id in alone]

    async def _around(self, caller: Caller, request: Prepare, half: Event) -> list[Event]:
        is_call = half.type is EventType.TOOL_CALL
        return await self._storage.list_between(
            caller,
            request.conversation_id,
            branch=request.branch,
            after_seq=half.seq if is_call else max(0, half.seq - PARTNER_REACH),
            before_seq=half.seq + PARTNER_REACH if is_call else half.seq,
            types=[EventType.TOOL_RESULT if is_call else EventType.TOOL_CALL],
        )

    def _context_request(
        self, request: Prepare, material: _Material, partners: Sequence[Event]
    ) -> ContextRequest:
        newest = material.newest.events
        return ContextRequest(
            counter=self._counter_for(request.model or material.agent.model),
            budget_tokens=request.budget_tokens,
            response_reserve_tokens=request.response_reserve_tokens,
            total_events=_total_events(material),
            recent=newest[: request.recent_events],
            relevant=material.found.hits,
            others=(*newest[request.recent_events :], *material.expanded, *partners),
            system_prompt=material.agent.system_prompt,
            current_message=request.current_message,
            payload_format=request.payload_format,
            strategy=request.strategy,
            snippet_chars=request.snippet_chars,
            include_tool_calls=request.include_tool_calls,
            pins=request.pins,
            required=request.required,
        )


def _shown(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.belongs_in_context]


def _total_events(material: _Material) -> int:
    """Return how many events there are to choose from: exactly when all were listed, else as the
    conversation counts them, over all of its branches.
    """
    newest = material.newest
    if newest.is_all:
        return len(newest.events)
    return max(material.conversation.event_count, len(newest.events))


def _events_to_list(request: Prepare) -> int:
    if request.strategy is StrategyName.FULL:
        return MAX_LISTED_EVENTS
    index_lines = request.budget_tokens // TOKENS_PER_INDEX_LINE
    wanted = max(FULL_UP_TO_EVENTS, request.recent_events + index_lines)
    return min(MAX_LISTED_EVENTS, wanted)


def _focused(hit: Hit, query: str) -> Hit:
    """Let a snippet begin at the sentence of the chunk that speaks most of the query."""
    start = best_sentence(hit.event.body, hit.chunk_start, hit.chunk_end, query)
    return replace(hit, chunk_start=start)


def _newest_user_words(newest: Sequence[Event]) -> str:
    return next((event.content for event in newest if event.is_user_message), "")


def _distinct(material: _Material) -> list[Event]:
    found = (hit.event for hit in material.found.hits)
    all_events = (*material.newest.events, *found, *material.expanded)
    events = {event.seq: event for event in all_events}
    return [events[seq] for seq in sorted(events)]


def _within(caller: Caller, seconds: float) -> Caller:
    if caller.timeout_s is None:
        return replace(caller, timeout_s=seconds)
    return replace(caller, timeout_s=min(seconds, caller.timeout_s * SEARCH_SHARE))
