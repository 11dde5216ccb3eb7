"""Logs searches without making anybody wait: a bounded queue, written in batches."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

import structlog
from prometheus_client import Counter

from annals_common.errors import AnnalsError
from annals_common.ids import uuid7
from annals_common.principal import Actor
from annals_storage.domain.search_log import LoggedSearch, SearchLogKind
from annals_storage.ports.search import SearchLogStore

MAX_WAITING = 2_048
"""Searches in the queue; with queries of ordinary length, less than a mebibyte."""
BATCH_SEARCHES = 512
WRITE_SECONDS = 1.0
DROPPED = Counter("annals_search_log_dropped_total", "Searches that were not logged.", ["cause"])
log = structlog.get_logger()


class SearchLog:
    """Searches on their way into the log. A crash loses those of the last second."""

    def __init__(self, store: SearchLogStore, *, max_waiting: int = MAX_WAITING) -> None:
        self._store, self._max_waiting = store, max_waiting
        self._waiting: deque[tuple[UUID, LoggedSearch]] = deque()
        self._closing = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Write what waits, every second, until drained."""
        self._writing = asyncio.create_task(self._run())

    async def drain(self) -> None:
        """Return when everything recorded is written."""
        self._closing.set()
        if self._writing is not None:
            await self._writing
        await self.flush()

    def record(
        self,
        tenant_id: UUID,
        actor: Actor,
        *,
        kind: SearchLogKind,
        query: str,
        conversation_ids: Sequence[UUID],
        scores: Sequence[float],
        search_time_ms: float,
    ) -> None:
        """Log a search that has been answered; `scores` of its hits, best first.

        Never waits: when the queue is full, the search is dropped and counted.
        """
        if len(self._waiting) >= self._max_waiting:
            DROPPED.labels("full").inc()
            return
        search = LoggedSearch(
            search_id=uuid7(),
            kind=kind,
            query=query,
            conversation_id=conversation_ids[0] if len(conversation_ids) == 1 else None,
            hit_count=len(scores),
            top_score=scores[0] if scores else 0.0,
            search_time_ms=search_time_ms,
            actor=actor,
            created_at=datetime.now(UTC),
        )
        self._waiting.append((tenant_id, search))

    async def _run(self) -> None:
        while not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), WRITE_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write everything that waits now."""
        while self._waiting:
            count = min(BATCH_SEARCHES, len(self._waiting))
            batch: dict[UUID, list[LoggedSearch]] = defaultdict(list)
            for tenant_id, search in [self._waiting.popleft() for _ in range(count)]:
                batch[tenant_id].append(search)
            for tenant_id, searches in batch.items():
                await self._write(tenant_id, searches)

    async def _write(self, tenant_id: UUID, searches: Sequence[LoggedSearch]) -> None:
        try:
            await self._store.write(tenant_id, searches)
        except (AnnalsError, TimeoutError) as error:
            DROPPED.labels("unwritten").inc(len(searches))
            log.warning("searches not logged", count=len(searches), cause=str(error))
        except Exception:
            DROPPED.labels("unwritten").inc(len(searches))
            log.exception("searches not logged", count=len(searches))
