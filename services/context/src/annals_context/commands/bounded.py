"""A memory of so many bytes: what was not used for longest, or is too old, goes."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from annals_context.commands.cache_metrics import BYTES, EVICTIONS

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
LARGEST_SHARE = 0.25
"""Of the bytes, how much one value may take: a single one must not drive out all others."""


class Bounded(Generic[K, V]):
    """Values by key. `name` tells its metrics apart; `now` is in seconds."""

    def __init__(
        self,
        name: str,
        *,
        max_bytes: int,
        ttl_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._max_bytes, self._ttl_seconds = name, max_bytes, ttl_seconds
        self._now = now
        self._bytes = 0
        self._values: OrderedDict[K, tuple[V, int, float]] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        """What is there, as its putters measured it."""
        return self._bytes

    def get(self, key: K) -> V | None:
        """Return a value that is not too old."""
        found = self._values.get(key)
        if found is None:
            return None
        value, _, until = found
        if until <= self._now():
            self._remove(key, "age")
            return None
        self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V, size_bytes: int) -> None:
        """Keep a value in place of a former one, unless it is too large."""
        self._remove(key)
        if size_bytes > self._max_bytes * LARGEST_SHARE:
            return
        self._values[key] = (value, size_bytes, self._now() + self._ttl_seconds)
        self._bytes += size_bytes
        while self._bytes > self._max_bytes:
            self._remove(next(iter(self._values)), "size")
        BYTES.labels(self._name).set(self._bytes)

    def _remove(self, key: K, reason: str = "") -> None:
        found = self._values.pop(key, None)
        if found is None:
            return
        self._bytes -= found[1]
        BYTES.labels(self._name).set(self._bytes)
        if reason:
            EVICTIONS.labels(self._name, reason).inc()
