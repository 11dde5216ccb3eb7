"""What the engine in this process promises besides the contract: it survives being killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from tests.contract import vector_writer
from tests.contract.vector_points import DIMENSIONS, ask, chunk, ids, random_units

from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.search import SearchScope, Signal
from annals_storage.vectors import edge
from annals_storage.vectors.edge import EdgeVectorIndex
from annals_storage.vectors.edge_shard import (
    ShardLockedError,
    ShardUnusableError,
    optimize_offline,
)

TENANT = UUID(int=1)
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "shard"


def index_at(path: Path, *, dimensions: int = DIMENSIONS) -> EdgeVectorIndex:
    return EdgeVectorIndex(path, dimensions=dimensions)


def kill_a_writer(path: Path, *, after_upserts: int) -> int:
    """Kill -9 a process that upserts; return how many points it knew to be written."""
    command = [sys.executable, "-m", vector_writer.__name__, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as writer:
        for _ in range(after_upserts):
            acknowledged = writer.stdout.readline()
        writer.kill()
        lines = [acknowledged, *writer.stdout.readlines()]
    return max(int(line) for line in lines if line.endswith("\n"))


@pytest.mark.parametrize("after_upserts", [1, 5])
async def test_a_killed_process_loses_no_point_it_was_told_is_written(path, after_upserts):
    acknowledged = kill_a_writer(path, after_upserts=after_upserts)
    index = index_at(path)
    await index.open()
    assert await index.count(SearchScope(TENANT)) >= acknowledged
    await index.upsert([chunk(TENANT)])
    await index.close()


async def test_a_shard_opens_again_and_again_after_kills(path):
    acknowledged = sum(kill_a_writer(path, after_upserts=2) for _ in range(3))
    index = index_at(path)
    await index.open()
    assert await index.count(SearchScope(TENANT)) >= acknowledged
    await index.close()


async def test_close_and_open_keeps_everything(path):
    points = [chunk(TENANT, dense=vector) for vector in random_units(3, 30)]
    query = ask(SearchScope(TENANT), limit=5, dense=points[0].dense)
    index = index_at(path)
    await index.open()
    await index.upsert(points)
    before = await index.query(query)
    await index.close()

    again = index_at(path)
    await again.open()
    assert await again.query(query) == before
    await again.close()


async def test_the_log_is_bounded_by_flushes(path, monkeypatch):
    monkeypatch.setattr(edge, "FLUSH_EVERY_POINTS", 100)
    index = index_at(path)
    await index.open()
    for _ in range(5):
        await index.upsert([chunk(TENANT) for _ in range(60)])
    assert index._unflushed_points < 100
    assert await index.count(SearchScope(TENANT)) == 300
    await index.close()


async def test_a_second_opener_is_told_that_the_shard_is_in_use(path):
    first = index_at(path)
    await first.open()
    with pytest.raises(ShardLockedError, match="another process"):
        await index_at(path).open()
    await first.close()


async def test_other_dimensions_are_refused_with_what_to_do(path):
    first = index_at(path)
    await first.open()
    await first.close()
    with pytest.raises(ShardUnusableError, match=r"expected vector size 16.*reindex"):
        await index_at(path, dimensions=16).open()


@pytest.mark.parametrize("victim", ["edge_config.json", "segments/*/segment.json", "wal/open-1"])
async def test_a_damaged_shard_is_refused_with_what_to_do(path, victim):
    first = index_at(path)
    await first.open()
    await first.upsert([chunk(TENANT)])
    await first.close()
    for file in path.glob(victim):
        file.write_bytes(b"\0 not what was written")
    with pytest.raises(ShardUnusableError, match=r"remove this directory.*reindex"):
        await index_at(path).open()


async def test_calls_outside_open_and_close_are_unavailable(path):
    index = index_at(path)
    with pytest.raises(DependencyUnavailableError, match="vector engine"):
        await index.ping()
    await index.open()
    await index.close()
    await index.close()
    with pytest.raises(DependencyUnavailableError, match="vector engine"):
        await index.query(ask(SearchScope(TENANT)))


async def test_closing_while_calls_run_ends_each_with_an_answer_or_unavailable(path):
    index = index_at(path)
    await index.open()
    await index.upsert([chunk(TENANT) for _ in range(200)])
    queries = [index.query(ask(SearchScope(TENANT))) for _ in range(20)]
    *answers, closed = await asyncio.gather(*queries, index.close(), return_exceptions=True)
    assert closed is None
    failures = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(failure, DependencyUnavailableError) for failure in failures)


async def test_optimising_offline_keeps_answers_and_drops_what_was_deleted(path):
    kept = [chunk(TENANT, dense=vector) for vector in random_units(4, 600)]
    dropped = [chunk(TENANT, chunk_id=uuid4(), conversation_id=UUID(int=9)) for _ in range(600)]
    query = ask(SearchScope(TENANT), limit=10, dense=kept[0].dense)
    index = index_at(path)
    await index.open()
    await index.upsert([*kept, *dropped])
    await index.delete_conversation(TENANT, UUID(int=9))
    before = ids((await index.query(query))[Signal.DENSE])
    await index.close()

    optimize_offline(path, DIMENSIONS)

    again = index_at(path)
    await again.open()
    assert ids((await again.query(query))[Signal.DENSE]) == before
    assert await again.count(SearchScope(TENANT)) == 600
    await again.close()
