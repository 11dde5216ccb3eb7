"""What is stored while processes die, and how to see that all of it arrived once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import AnnalsClient, AsyncAnnalsClient, user
from annals_local.paths import LocalPaths
from annals_local.postgres import start_postgres

INDEX_TIMEOUT_S = 300.0


def texts(count: int) -> list[str]:
    return [f"Parcel {number} left the depot" for number in range(1, count + 1)]


def events(count: int) -> Iterator[pb.NewEvent]:
    return (user(text) for text in texts(count))


async def assert_stored_once(client: AsyncAnnalsClient, conversation: str, count: int) -> None:
    stored = [event async for event in client.events.list(conversation, page_size=1000)]

    assert [event.seq for event in stored] == list(range(1, count + 1))
    assert [event.message.content for event in stored] == texts(count)


def assert_mirrored(client: AnnalsClient, *, timeout_s: float = INDEX_TIMEOUT_S) -> None:
    """Wait for the indexer; the mirror must then hold every chunk."""
    deadline_s = time.monotonic() + timeout_s
    while (status := client.index.status()).pending_count:
        assert time.monotonic() < deadline_s, status
        time.sleep(0.05)
    assert status.parked_count == 0
    assert status.chunk_count == status.point_count > 0


def assert_verified(paths: LocalPaths) -> None:
    """`annals-storage verify` on a stopped installation finds no difference."""
    postgres = start_postgres(paths.postgres)
    settings = {
        "ANNALS_STORAGE_DATABASE_URL": postgres.app_url,
        "ANNALS_STORAGE_DATA_DIR": str(paths.data),
    }
    verify = [sys.executable, "-m", "annals_storage", "verify"]
    try:
        done = subprocess.run(
            verify, env={**os.environ, **settings}, capture_output=True, text=True, check=False
        )
    finally:
        postgres.stop()
    assert done.returncode == 0, done.stdout + done.stderr
