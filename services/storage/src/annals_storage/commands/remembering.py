"""A short memory in front of lookups that every call needs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

CACHE_TTL = timedelta(seconds=5)
"""How long another replica may still go by what was changed here."""
CACHE_ENTRIES = 10_000

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def utc_now() -> datetime:
    """Return the present moment."""
    return datetime.now(UTC)


class Remembering(Generic[K, V]):
    """Looks values up and remembers those it finds for `CACHE_TTL`."""

    def __init__(
        self,
        lookup: Callable[[K], Awaitable[V | None]],
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._lookup, self._now = lookup, now
        self._forgotten = 0
        self._cache: OrderedDict[K, tuple[datetime, V]] = OrderedDict()

    async def __call__(self, key: K) -> V | None:
        """Return the value, or None when there is none."""
        entry = self._cache.get(key)
        if entry is not None and entry[0] > self._now():
            return entry[1]
        before = self._forgotten
        value = await self._lookup(key)
        # When something was forgotten meanwhile, what was read may be what was true before.
        if value is not None and before == self._forgotten:
            self._keep(key, value)
        return value

    def forget(self, is_stale: Callable[[V], bool]) -> None:
        """Look these values up anew at their next use."""
        self._forgotten += 1
        for key, (_, value) in list(self._cache.items()):
            if is_stale(value):
                del self._cache[key]

    def _keep(self, key: K, value: V) -> None:
        self._cache[key] = (self._now() + CACHE_TTL, value)
        self._cache.move_to_end(key)
        while len(self._cache) > CACHE_ENTRIES:
            self._cache.popitem(last=False)
