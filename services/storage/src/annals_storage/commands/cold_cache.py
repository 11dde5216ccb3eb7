"""Decoded segments, each read once however many ask for it at once."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from annals_storage.domain.cold_storage import ColdWords, Segment

MAX_CACHE_CHARS = 64 * 1024 * 1024
TTL_SECONDS = 60.0
"""How long another process may hold words in memory that were erased here."""

Words = Mapping[UUID, ColdWords]
Load = Callable[[Segment], Awaitable[dict[UUID, ColdWords] | None]]
Key = tuple[UUID, UUID]
"""(tenant_id, segment_id)."""


class SegmentCache:
    """The segments used last, at most `max_chars` of text; a larger one is not kept."""

    def __init__(
        self,
        load: Load,
        *,
        max_chars: int = MAX_CACHE_CHARS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load, self._max_chars, self._clock = load, max_chars, clock
        self._kept: OrderedDict[Key, tuple[float, int, Words]] = OrderedDict()
        self._loading: dict[Key, asyncio.Task[Words]] = {}
        self._chars = 0

    async def get(self, tenant_id: UUID, segment: Segment) -> Words:
        """Return the words by event id; none when the object is gone.

        Raises DependencyUnavailableError.
        """
        key = (tenant_id, segment.segment_id)
        if (kept := self._kept.get(key)) is not None and kept[0] > self._clock():
            self._kept.move_to_end(key)
            return kept[2]
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.create_task(self._fetch(key, segment))
            task.add_done_callback(lambda done: self._settled(key, done))
        # Who gives up waiting must not take the words from the others who wait.
        return await asyncio.shield(task)

    def forget(self, tenant_id: UUID, segment_id: UUID) -> None:
        """Drop a segment that is no more."""
        key = (tenant_id, segment_id)
        self._loading.pop(key, None)
        self._drop(key)

    async def _fetch(self, key: Key, segment: Segment) -> Words:
        words = await self._load(segment)
        if words is None:
            return {}
        size = sum(item.size_chars() for item in words.values())
        if size <= self._max_chars and key in self._loading:
            self._keep(key, size, words)
        return words

    def _keep(self, key: Key, size: int, words: Words) -> None:
        self._drop(key)
        self._kept[key] = (self._clock() + TTL_SECONDS, size, words)
        self._chars += size
        now = self._clock()
        for old, (expires_at, _, _) in list(self._kept.items()):
            if expires_at <= now or self._chars > self._max_chars:
                self._drop(old)

    def _drop(self, key: Key) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            self._chars -= kept[1]

    def _settled(self, key: Key, done: asyncio.Task[Words]) -> None:
        if self._loading.get(key) is done:
            del self._loading[key]
        if not done.cancelled():
            # Looked at, so that a failure nobody waits for any more is no warning.
            done.exception()
