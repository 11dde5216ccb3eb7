"""Asks storage for everything a context may need, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from annals_common.errors import AnnalsError, DeadlineExceededError, DependencyUnavailableError
from annals_context.commands.background import Background, ReadBackground
from annals_context.commands.patience import within
from annals_context.commands.prepare_request import Prepare
from annals_context.commands.prompting import conversation_and_agent
from annals_context.commands.together import first_error
from annals_context.domain.events import Event, Role
from annals_context.domain.options import IndexOptions, StrategyName, resolve
from annals_context.domain.strategies import FULL_UP_TO_EVENTS, choose
from annals_context.ports import AgentFacts, Caller, ConversationFacts, SearchAnswer, Storage

SEARCH_TIMEOUT_SECONDS = 5.0
MAX_LISTED_EVENTS = 1_000
MAX_QUERY_CHARS = 32_768
"""What storage takes; the beginning of a longer message says enough."""
TOKENS_PER_INDEX_LINE = 20
"""A cautious guess, to fetch no more events than could be shown."""
USER_MESSAGES_TO_LIST = 10
"""More than the one wanted: some may have failed."""
SEARCH_TIMEOUT = "search_timeout"
SEARCH_UNAVAILABLE = "search_unavailable"


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest events that belong in a context, newest first. `is_all`: there are no others.

    `limit`: how many were asked for.
    """

    events: tuple[Event, ...]
    is_all: bool
    limit: int


@dataclass(frozen=True, slots=True)
class Found:
    """What the search answered, and the query it was asked."""

    answer: SearchAnswer = field(default_factory=lambda: SearchAnswer(()))
    query: str = ""


@dataclass(frozen=True, slots=True)
class Material:
    """All that was read for a request. `options`: whoever chose them. `expanded`: what a reader
    asked for and was neither listed nor found.
    """

    conversation: ConversationFacts
    agent: AgentFacts
    options: IndexOptions
    newest: Newest
    found: Found
    background: Background
    expanded: tuple[Event, ...] = ()

    @property
    def total_events(self) -> int:
        """How many events there are to choose from."""
        return total_events(self.conversation, self.newest)


class Gather:
    """Reads concurrently; a failed search only degrades."""

    def __init__(self, storage: Storage, background: ReadBackground) -> None:
        self._storage, self._background = storage, background

    async def __call__(self, caller: Caller, request: Prepare) -> Material:
        """Raises what storage raises."""
        async with first_error(), asyncio.TaskGroup() as tasks:
            facts = tasks.create_task(self._facts(caller, request))
            newest = tasks.create_task(self._newest(caller, request, resolve(request.choices)))
            found = tasks.create_task(self._search(caller, request, newest))
            enough = tasks.create_task(self._enough(caller, request, facts, newest))
            background = tasks.create_task(self._prepared(caller, request, facts, newest))
        conversation, agent = facts.result()
        options = resolve(request.choices, agent.index)
        return Material(
            conversation, agent, options, enough.result(), found.result(), background.result()
        )

    async def _facts(
        self, caller: Caller, request: Prepare
    ) -> tuple[ConversationFacts, AgentFacts]:
        return await conversation_and_agent(self._storage, caller, request.conversation_id)

    async def _newest(self, caller: Caller, request: Prepare, options: IndexOptions) -> Newest:
        """Return the newest events and, further back if need be, the newest user message."""
        limit = events_to_list(request, options)
        found = await self._storage.list_newest(
            caller, request.conversation_id, branch=request.branch, limit=limit
        )
        is_all = len(found) < limit
        events = shown(found)
        if is_all or request.current_message or any(event.is_user_message for event in events):
            return Newest(tuple(events), is_all, limit)
        said = await self._storage.list_newest(
            caller,
            request.conversation_id,
            branch=request.branch,
            limit=USER_MESSAGES_TO_LIST,
            roles=[Role.USER],
        )
        return Newest((*events, *shown(said)[:1]), is_all, limit)

    async def _enough(
        self,
        caller: Caller,
        request: Prepare,
        facts: asyncio.Task[tuple[ConversationFacts, AgentFacts]],
        newest: asyncio.Task[Newest],
    ) -> Newest:
        """Read again where the agent's configuration wants more than the defaults do."""
        options = resolve(request.choices, (await facts)[1].index)
        known = await newest
        if known.is_all or events_to_list(request, options) <= known.limit:
            return known
        return await self._newest(caller, request, options)

    async def _prepared(
        self,
        caller: Caller,
        request: Prepare,
        facts: asyncio.Task[tuple[ConversationFacts, AgentFacts]],
        newest: asyncio.Task[Newest],
    ) -> Background:
        conversation, agent = await facts
        options = resolve(request.choices, agent.index)
        n_events = total_events(conversation, await newest)
        return await self._background(caller, request, choose(n_events, options.strategy))

    async def _search(
        self, caller: Caller, request: Prepare, newest: asyncio.Task[Newest]
    ) -> Found:
        query = request.query or request.current_message
        query = query or _newest_user_words((await newest).events)
        query = query[:MAX_QUERY_CHARS].strip()
        if not query or not request.relevant_events:
            return Found()
        return Found(await self._answer(caller, request, query), query)

    async def _answer(self, caller: Caller, request: Prepare, query: str) -> SearchAnswer:
        try:
            found = await self._storage.search(
                within(caller, SEARCH_TIMEOUT_SECONDS),
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
        hits = tuple(hit for hit in found.hits if hit.event.belongs_in_context)
        return SearchAnswer(hits, found.degraded)


def shown(events: Sequence[Event]) -> list[Event]:
    """Return the events that belong in a context."""
    return [event for event in events if event.belongs_in_context]


def total_events(conversation: ConversationFacts, newest: Newest) -> int:
    """Return how many events there are to choose from: exactly when all were listed, else as the
    conversation counts them, over all of its branches.
    """
    if newest.is_all:
        return len(newest.events)
    return max(conversation.event_count, len(newest.events))


def events_to_list(request: Prepare, options: IndexOptions) -> int:
    """Return how many of the newest events could be shown."""
    if options.strategy is StrategyName.FULL:
        return MAX_LISTED_EVENTS
    index_tokens = min(request.budget_tokens, options.max_index_tokens)
    wanted = max(FULL_UP_TO_EVENTS, options.recent_events + index_tokens // TOKENS_PER_INDEX_LINE)
    return min(MAX_LISTED_EVENTS, wanted)


def _newest_user_words(newest: Sequence[Event]) -> str:
    return next((event.content for event in newest if event.is_user_message), "")
