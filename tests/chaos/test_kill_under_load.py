"""Storage and PostgreSQL die in turns, again and again, while everything that writes is at work.

Whatever was acknowledged is there, once, and the mirror catches up within a minute.
`KILLS=20 pytest tests/chaos` kills more often.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.loads import assert_mirrored, assert_verified
from tests.chaos.mixed import Persistent, Progress, Written, assert_all_there_once, create, write
from tests.support.invariants import assert_invariants
from tests.support.local import LocalRun, running_local, wait_until

from annals_local.files import read_json

KILLS = int(os.environ.get("KILLS", "2"))
WRITERS = 8
ROOMS = 3
ROUNDS_PER_KILL = 10
CONVERGE_TIMEOUT_S = 60.0
TIMEOUT_S = 120 + 30 * KILLS


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalRun]:
    with running_local(tmp_path) as run:
        yield run


@pytest.mark.timeout(TIMEOUT_S)
async def test_kill_9_loses_and_doubles_nothing(local: LocalRun) -> None:
    endpoints = local.endpoints()
    async with Persistent(endpoints["storage"], endpoints["api_key"]) as raw:
        rooms = [await create(raw) for _ in range(ROOMS)]

        await _write_while_killing(local, raw, rooms)

        assert raw.repeated >= KILLS
        for room in rooms:
            await assert_all_there_once(raw, room)
    assert_invariants(_admin_url(local), endpoints["tenant_id"])
    with local.client() as client:
        assert_mirrored(client, timeout_s=CONVERGE_TIMEOUT_S)
    assert local.stop() == 0
    assert_verified(local.paths)


async def _write_while_killing(local: LocalRun, raw: Persistent, rooms: list[Written]) -> None:
    progress = Progress()
    async with asyncio.TaskGroup() as writers:
        for writer in range(WRITERS):
            writers.create_task(write(raw, rooms[writer % ROOMS], writer, progress))
        for kill in range(1, KILLS + 1):
            await progress.reach(kill * ROUNDS_PER_KILL)
            await asyncio.to_thread(_kill_storage if kill % 2 else _kill_postgres, local)
        await progress.reach((KILLS + 1) * ROUNDS_PER_KILL)
        progress.is_over = True


def _kill_storage(local: LocalRun) -> None:
    """Kill it in the middle of whatever it does; return once another one runs."""
    killed = local.signal("storage", signal.SIGKILL)
    wait_until(lambda: local.processes()["storage"] != killed)


def _kill_postgres(local: LocalRun) -> None:
    """Kill the postmaster; return once another one runs."""
    killed = local.postmaster()
    os.kill(killed.pid, signal.SIGKILL)
    ready = local.paths.postgres_ready
    wait_until(lambda: ready.exists() and local.postmaster() != killed)


def _admin_url(local: LocalRun) -> str:
    url: str = read_json(local.paths.postgres_ready)["app_url"]
    return url.replace("annals_app@", "postgres@")
