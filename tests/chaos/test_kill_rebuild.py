"""Storage dies while a generation of the mirror is built, and once it serves: nothing is lost.

`KILLS=20 pytest tests/chaos` kills more often.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.appending import append, ids
from tests.support.generations import command
from tests.support.indexing import indexed
from tests.support.storage import Tenant, fresh_tenant, running_storage, storage_settings
from tests.support.waiting import eventually

from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.generations import GenerationState, MirrorGeneration
from annals_storage.postgres.database import Database
from annals_storage.postgres.generations import PostgresGenerations

KILLS = int(os.environ.get("KILLS", "2"))
EVENTS = 1_500
TEXTS = 30
DELETED = 50
TIMEOUT_S = 120.0


@pytest.mark.timeout(120 + 60 * KILLS)
async def test_kill_9_while_a_generation_is_built_and_removed(
    own_postgres: LocalPostgres, tmp_path: Path
) -> None:
    await _filled(own_postgres, tmp_path)
    async with _generations(own_postgres) as store:
        [serving] = await store.all()
        requested = await store.request(serving.model)
        assert requested is not None

        for number in range(1, KILLS + 1):
            due = EVENTS * number // (KILLS + 1)
            await _killed_when(
                store, own_postgres, tmp_path, lambda rows, due=due: rows[-1].sources_done >= due
            )
        await _killed_when(store, own_postgres, tmp_path, _replaced)
        await _killed_when(store, own_postgres, tmp_path, lambda rows: len(rows) == 1)

        [only] = await store.all()
    code, said = await command(own_postgres, tmp_path, "verify")
    report = json.loads(said[: said.rindex("}") + 1])
    assert (only.number, only.state) == (requested.number, GenerationState.SERVING)
    assert (code, report["chunks"]) == (0, EVENTS - DELETED), said
    assert _folders(tmp_path) == [f"vectors-{only.number}"]


def _folders(data_dir: Path) -> list[str]:
    return [path.name for path in data_dir.glob("vectors*")]


def _replaced(rows: list[MirrorGeneration]) -> bool:
    return rows[-1].state is GenerationState.SERVING


async def _filled(postgres: LocalPostgres, data_dir: Path) -> None:
    """Store and index events; delete some while nobody indexes."""
    async with (
        running_storage(storage_settings(postgres, data_dir)) as storage,
        fresh_tenant(storage) as tenant,
    ):
        stored = await _said(tenant)
        await indexed(tenant)
        for event_id in stored[:DELETED]:
            await tenant.client.events.delete(event_id)


async def _said(tenant: Tenant) -> list[str]:
    conversation_id = (await tenant.client.conversations.create()).conversation_id
    stored: list[str] = []
    for start in range(0, EVENTS, 100):
        events = [user(f"note {number % TEXTS}") for number in range(start, start + 100)]
        stored += ids(await append(tenant.raw, conversation_id, *events))
    return stored


@asynccontextmanager
async def _generations(postgres: LocalPostgres) -> AsyncIterator[PostgresGenerations]:
    database = Database(postgres.app_url, max_connections=1)
    await database.open()
    yield PostgresGenerations(database)
    await database.close()


async def _killed_when(store, postgres, data_dir, holds) -> None:
    process = await _serving(postgres, data_dir)
    try:
        await eventually(store.all, holds, timeout_s=TIMEOUT_S)
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()


async def _serving(postgres: LocalPostgres, data_dir: Path) -> Process:
    environ = {
        "PATH": os.environ["PATH"],
        "ANNALS_STORAGE_DATABASE_URL": postgres.app_url,
        "ANNALS_STORAGE_DATA_DIR": str(data_dir),
        "ANNALS_STORAGE_SERVER__ADDRESS": "127.0.0.1:0",
        "ANNALS_STORAGE_MIRROR_GRACE_SECONDS": "1",
        "ANNALS_STORAGE_EMBEDDING_THREADS": "1",
    }
    return await create_subprocess_exec(
        sys.executable, "-m", "annals_storage", "serve", env=environ, stdout=DEVNULL, stderr=DEVNULL
    )
