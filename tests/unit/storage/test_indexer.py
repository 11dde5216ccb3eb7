"""The indexer ends when it is told to, also when the outbox hides the cancellation."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.indexing import OutboxTotals
from annals_storage.indexer.worker import Indexer


class HidesCancellation:
    """Answers a cancelled claim as PostgreSQL may: as if the connection were lost."""

    def __init__(self) -> None:
        self.claiming = asyncio.Event()

    async def release(self, _owner: str) -> int:
        return 0

    async def totals(self) -> list[OutboxTotals]:
        return []

    async def claim(self, _owner: str, **_limits: Any) -> list[Any]:
        self.claiming.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise DependencyUnavailableError("postgresql") from None
        return []


async def test_a_hidden_cancellation_still_ends_it() -> None:
    outbox = HidesCancellation()
    indexer = Indexer(outbox=cast("Any", outbox), mirror=cast("Any", None), owner="test")
    running = asyncio.create_task(indexer.run())
    await outbox.claiming.wait()

    running.cancel()

    done, _ = await asyncio.wait({running}, timeout=5)
    assert done
