"""An indexer of its own is stopped and killed in the middle of its work, while others write.

A minute after its last death the mirror holds every chunk and no other.
`KILLS=100 pytest tests/chaos/test_kill_indexer.py` kills more often.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
import urllib.request
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.bench.stack import free_port
from tests.support.scratch import ScratchDatabase
from tests.support.waiting import eventually
from tests.support.writing import Writer, writing

KILLS = int(os.environ.get("KILLS", "1"))
CONVERGE_TIMEOUT_S = 60.0
START_TIMEOUT_S = 60.0
MAX_WAITING = 150
TIMEOUT_S = 180 + 30 * KILLS
_FIGURES = """
SELECT (SELECT count(*) FROM annals.outbox) AS waiting,
       (SELECT count(*) FROM annals.outbox WHERE lease_owner IS NOT NULL) AS leased,
       (SELECT count(DISTINCT event_id) FROM annals.chunks) AS mirrored
"""


class Index:
    """`annals-storage index` over a database and a folder."""

    def __init__(self, scratch: ScratchDatabase, folder: Path) -> None:
        self._scratch = scratch
        self.port = free_port()
        self.environ = {
            "PATH": os.environ["PATH"],
            "ANNALS_STORAGE_DATABASE_URL": scratch.app_url,
            "ANNALS_STORAGE_DATA_DIR": str(folder),
            "ANNALS_STORAGE_EMBEDDING_THREADS": "1",
            "ANNALS_STORAGE_SERVER__METRICS_ADDRESS": f"127.0.0.1:{self.port}",
        }

    async def run(self, command: str) -> Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "annals_storage", command),
            env=self.environ,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )

    async def figures(self) -> dict[str, int]:
        [row] = await asyncio.to_thread(self._scratch.admin, _FIGURES)
        return {name: int(value) for name, value in row.items()}

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            return str(answer.read().decode())


@asynccontextmanager
async def load(scratch: ScratchDatabase, index: Index) -> AsyncIterator[None]:
    """Somebody who writes as much as keeps the outbox from running empty."""

    async def write(writer: Writer) -> None:
        while True:
            if (await index.figures())["waiting"] < MAX_WAITING:
                await writer.append(20)
            await asyncio.sleep(0.05)

    async with writing(scratch, connections=1) as make:
        task = asyncio.create_task(write(await make()))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()


@pytest.mark.timeout(TIMEOUT_S)
async def test_kill_9_leaves_nothing_missing_and_nothing_extra(
    scratch: ScratchDatabase, tmp_path: Path
) -> None:
    index, chance = Index(scratch, tmp_path), random.Random(7)
    async with load(scratch, index):
        await stopped_at_work(index)
        for _ in range(KILLS):
            await killed_at_work(index, at_least=chance.randint(1, 120))
        begun_s = time.monotonic()
        process = await index.run("index")
        await eventually(index.figures, lambda now: now["leased"], timeout_s=START_TIMEOUT_S)

    await eventually(
        index.figures,
        lambda now: now["waiting"] == 0,
        timeout_s=CONVERGE_TIMEOUT_S - (time.monotonic() - begun_s),
    )
    assert "annals_outbox_pending" in await asyncio.to_thread(index.metrics)
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    verified = await index.run("verify")
    assert await verified.wait() == 0


async def stopped_at_work(index: Index) -> None:
    """Start one and stop it while it holds leases: it gives them back."""
    process = await index.run("index")
    await eventually(index.figures, lambda now: now["leased"], timeout_s=START_TIMEOUT_S)

    process.send_signal(signal.SIGTERM)

    assert await process.wait() == 0
    figures = await index.figures()
    assert figures["waiting"] > figures["leased"] == 0


async def killed_at_work(index: Index, *, at_least: int) -> None:
    """Start one, let it mirror so many events, and kill it while it holds leases."""
    before = (await index.figures())["mirrored"]
    process = await index.run("index")
    await eventually(
        index.figures,
        lambda now: now["mirrored"] >= before + at_least and now["leased"],
        timeout_s=START_TIMEOUT_S,
    )
    process.kill()
    await process.wait()
