"""What the indexer did."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from prometheus_client import Counter
from tests.support.scratch import run
from tests.support.storage import Tenant
from tests.support.waiting import eventually

from annals_local.postgres import LocalPostgres
from annals_storage.indexer.metrics import EMBEDDED_CHUNKS, REUSED_CHUNKS


async def indexed(tenant: Tenant) -> None:
    """Wait until everything is mirrored."""
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)


def hold_back(postgres: LocalPostgres, tenant: Tenant, conversation_id: str) -> None:
    """Leave an entry in the conversation's outbox that nobody takes before the test has ended."""
    run(
        postgres.admin_url,
        "INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, available_at) VALUES"
        " (%(tenant)s, 'event', gen_random_uuid(), %(room)s, now() + interval '1 day')",
        {"tenant": tenant.tenant_id, "room": conversation_id},
    )


_DUE = """
SELECT count(*) AS due FROM annals.outbox
WHERE parked_at IS NULL AND (lease_owner IS NOT NULL OR available_at <= now())
"""


async def nothing_to_index(postgres: LocalPostgres) -> None:
    """Wait until the indexer of the session's service has nothing of anybody's to do."""

    async def due() -> int:
        [row] = await asyncio.to_thread(run, postgres.admin_url, _DUE)
        return int(row["due"])

    await eventually(due, lambda now: now == 0)


@dataclass(slots=True)
class EmbeddingWork:
    """Chunks that went through the model, and chunks that did not need to, inside the block."""

    embedded: int = 0
    reused: int = 0

    def __enter__(self) -> Self:
        self.embedded, self.reused = -_value(EMBEDDED_CHUNKS), -_value(REUSED_CHUNKS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.embedded += _value(EMBEDDED_CHUNKS)
        self.reused += _value(REUSED_CHUNKS)


def _value(counter: Counter) -> int:
    [metric] = counter.collect()
    return int(next(s.value for s in metric.samples if s.name.endswith("_total")))
