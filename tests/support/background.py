"""What background work has prepared, kept in memory: the ports of context without a service."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from annals_context.domain.material import Period, Summary, Topic
from annals_context.ports import Caller


@dataclass
class MemoryTopics:
    """Topics and periods; raises `error` instead, or never answers."""

    topics: Sequence[Topic] = ()
    periods: Sequence[Period] = ()
    error: Exception | None = None
    is_silent: bool = False
    asked: list[tuple[Caller, str, int]] = field(default_factory=list)

    async def list_topics(
        self, caller: Caller, conversation_id: str, *, branch: int, limit: int
    ) -> Sequence[Topic]:
        await self._answer(caller, conversation_id, branch)
        return self.topics[:limit]

    async def list_periods(
        self, caller: Caller, conversation_id: str, *, branch: int
    ) -> Sequence[Period]:
        await self._answer(caller, conversation_id, branch)
        return self.periods

    async def _answer(self, caller: Caller, conversation_id: str, branch: int) -> None:
        self.asked.append((caller, conversation_id, branch))
        if self.is_silent:
            await asyncio.Event().wait()
        if self.error:
            raise self.error


@dataclass
class MemorySummaries:
    """Summaries; raises `error` instead."""

    summaries: Sequence[Summary] = ()
    error: Exception | None = None
    asked: list[tuple[Caller, str, int]] = field(default_factory=list)

    async def list_summaries(
        self, caller: Caller, conversation_id: str, *, branch: int, limit: int
    ) -> Sequence[Summary]:
        self.asked.append((caller, conversation_id, branch))
        if self.error:
            raise self.error
        return self.summaries[:limit]
