"""Reads what background work has prepared; a context can do without any of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from annals_common.errors import AnnalsError, DeadlineExceededError
from annals_context.commands.patience import within
from annals_context.commands.prepare_request import Prepare
from annals_context.domain.material import Period, Summary, Topic
from annals_context.domain.options import StrategyName
from annals_context.ports import Caller, Summaries, Topics

INDEX_TIMEOUT_SECONDS = 3.0
MAX_TOPICS = 100
MAX_SUMMARIES = 100
TOPICS = "topics"
SUMMARIES = "summaries"
WITH_SUMMARIES = frozenset(
    {StrategyName.SNIPPET, StrategyName.CLUSTERED, StrategyName.HIERARCHICAL}
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Background:
    """What there is, and what could not be had."""

    topics: Sequence[Topic] = ()
    periods: Sequence[Period] = ()
    summaries: Sequence[Summary] = ()
    degraded: tuple[str, ...] = ()


class ReadBackground:
    """Asks for what a strategy shows, all at once. A port that is None has nothing."""

    def __init__(self, topics: Topics | None, summaries: Summaries | None) -> None:
        self._topics, self._summaries = topics, summaries

    async def __call__(
        self, caller: Caller, request: Prepare, strategy: StrategyName
    ) -> Background:
        """Raises nothing that storage raises: what fails is missing and named."""
        patient = within(caller, INDEX_TIMEOUT_SECONDS)
        (
            (topics, no_topics),
            (periods, no_periods),
            (summaries, no_summaries),
        ) = await asyncio.gather(
            _or_nothing(TOPICS, lambda: self._read_topics(patient, request, strategy)),
            _or_nothing(TOPICS, lambda: self._read_periods(patient, request, strategy)),
            _or_nothing(SUMMARIES, lambda: self._read_summaries(patient, request, strategy)),
        )
        return Background(topics, periods, summaries, no_topics + no_periods + no_summaries)

    async def _read_topics(
        self, caller: Caller, request: Prepare, strategy: StrategyName
    ) -> Sequence[Topic]:
        if self._topics is None or strategy is not StrategyName.CLUSTERED:
            return ()
        return await self._topics.list_topics(
            caller, request.conversation_id, branch=request.branch, limit=MAX_TOPICS
        )

    async def _read_periods(
        self, caller: Caller, request: Prepare, strategy: StrategyName
    ) -> Sequence[Period]:
        if self._topics is None or strategy is not StrategyName.HIERARCHICAL:
            return ()
        return await self._topics.list_periods(
            caller, request.conversation_id, branch=request.branch
        )

    async def _read_summaries(
        self, caller: Caller, request: Prepare, strategy: StrategyName
    ) -> Sequence[Summary]:
        if self._summaries is None or strategy not in WITH_SUMMARIES:
            return ()
        return await self._summaries.list_summaries(
            caller, request.conversation_id, branch=request.branch, limit=MAX_SUMMARIES
        )


async def _or_nothing(
    what: str, read: Callable[[], Awaitable[Sequence[T]]]
) -> tuple[Sequence[T], tuple[str, ...]]:
    """Return what was read, or nothing and why."""
    try:
        async with asyncio.timeout(INDEX_TIMEOUT_SECONDS):
            return await read(), ()
    except (DeadlineExceededError, TimeoutError):
        return (), (f"{what}_timeout",)
    except AnnalsError:
        return (), (f"{what}_unavailable",)
