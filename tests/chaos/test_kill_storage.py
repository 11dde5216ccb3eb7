"""Storage dies in the middle of its work: what it acknowledged is there, and nothing twice.

`KILLS=20 pytest tests/chaos` kills more often.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.loads import assert_mirrored, assert_stored_once, assert_verified, events, texts
from tests.support.local import LocalRun, running_local

from annals_client import AsyncAnnalsClient, user

KILLS = int(os.environ.get("KILLS", "2"))
BATCH_EVENTS = 40
BATCHES_PER_KILL = 6
WRITERS = 8
EVENTS_PER_WRITER = 25
TIMEOUT_S = 120.0
TEST_TIMEOUT_S = 120 + 30 * KILLS
AHEAD_TIMEOUT_S = 2.0


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalRun]:
    with running_local(tmp_path) as run:
        yield run


@pytest.mark.timeout(TEST_TIMEOUT_S)
async def test_kill_9_during_a_bulk_import(local: LocalRun) -> None:
    count = BATCH_EVENTS * BATCHES_PER_KILL * (KILLS + 1)
    due = [BATCHES_PER_KILL * number for number in range(1, KILLS + 1)]
    killed = []
    async with local.async_client() as client:
        conversation = (await client.conversations.create()).conversation_id

        async for done in client.events.stream_append(
            conversation, events(count), batch_size=BATCH_EVENTS, timeout=TIMEOUT_S
        ):
            reached = due and done.batches >= due[0]
            if reached and await _gets_ahead(client, conversation, done.last_seq):
                due.pop(0)
                killed.append(local.signal("storage", signal.SIGKILL))

        assert len(set(killed)) == KILLS
        assert done.events == count
        await assert_stored_once(client, conversation, count)
    with local.client() as client:
        assert_mirrored(client)
    assert local.stop() == 0
    assert_verified(local.paths)


async def test_sigterm_under_load_loses_nothing_acknowledged(local: LocalRun) -> None:
    async with local.async_client() as client:
        halfway = asyncio.Event()
        writers = [_write(client, halfway) for _ in range(WRITERS)]
        tasks = [asyncio.create_task(writer) for writer in writers]
        await halfway.wait()

        local.signal("storage", signal.SIGTERM)

        for conversation in await asyncio.gather(*tasks):
            await assert_stored_once(client, conversation, EVENTS_PER_WRITER)
    assert [line["status"] for line in local.journal("process ended")] == [0]


async def _gets_ahead(client: AsyncAnnalsClient, conversation: str, acknowledged_seq: int) -> bool:
    """Wait until more is stored than was acknowledged: what is sent again is there already.

    False where nothing more is on its way: a resumed stream sends one batch at a time until
    it has sent again what was in flight.
    """
    deadline_s = time.monotonic() + AHEAD_TIMEOUT_S
    while time.monotonic() < deadline_s:
        newest = client.events.list(conversation, order="descending", limit=1)
        if (await anext(aiter(newest))).seq > acknowledged_seq:
            return True
    return False


async def _write(client: AsyncAnnalsClient, halfway: asyncio.Event) -> str:
    conversation = (await client.conversations.create()).conversation_id
    for number, text in enumerate(texts(EVENTS_PER_WRITER), start=1):
        await client.events.append(conversation, user(text), timeout=TIMEOUT_S)
        if number * 2 >= EVENTS_PER_WRITER:
            halfway.set()
    return conversation
