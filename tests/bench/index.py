"""`python -m tests.bench.index`: the indexer beside the bare model on the same texts and cores.

Events of a mixture are appended and held back. Then, in turns: the indexer mirrors those of one
tenant, and fastembed embeds the chunks that came out of it, with its defaults and with texts of
similar length in one batch, as a caller does who wants to be quick. Both run in this process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import click
import psycopg
from fastembed import TextEmbedding
from tests.bench.cpu import CpuMeter, spent
from tests.bench.harness import Report, progress
from tests.bench.indexer_stages import StageClock
from tests.bench.mixture import mixed_events
from tests.bench.seeding import APPEND_BATCH, HAND_OUT, HOLD_BACK, administer
from tests.bench.stack import Account, Stack, database_only, serving

from annals_storage.embedding.bm25 import Bm25Encoder
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.embedding.loading import load_embedder
from annals_storage.indexer.metrics import EMBED_SECONDS
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.worker import Indexer
from annals_storage.postgres.database import Database
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.vectors.edge import EdgeVectorIndex

RAW_BATCH_TEXTS = 16
"""In a batch of texts in the order of their length."""
WARM_UP_TEXTS = 64
TARGET = ">= 0.8"
_RELEASE = "UPDATE annals.outbox SET available_at = now() WHERE tenant_id = %s"
_CHUNKS = """
SELECT substring(x.words FROM k.start_char + 1 FOR k.end_char - k.start_char)
FROM annals.chunks AS k
JOIN annals.events AS e USING (tenant_id, event_id)
CROSS JOIN LATERAL (
  SELECT CASE e.type WHEN 'message' THEN e.content
                     WHEN 'tool_call' THEN e.tool_name || ': ' || e.tool_input
                     ELSE e.tool_name || ' -> ' || e.tool_result END AS words
) AS x
WHERE k.tenant_id = %s
ORDER BY e.seq, k.chunk_index
"""
_TABLE_BYTES = "SELECT pg_total_relation_size('annals.chunks')"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one turn of one side took: by the clock, and of this process' cores."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of each side with the same chunks. `model_s`: of the indexer's, in the model."""

    chunks: int
    indexer: Cost
    model_s: float
    defaults: Cost
    sorted_texts: Cost


@dataclass(slots=True)
class Bench:
    """What all rounds share."""

    stack: Stack
    database: Database
    vectors: EdgeVectorIndex
    embedder: FastembedEmbedder
    clock: StageClock
    rounds: list[Round] = field(default_factory=list)

    @property
    def bare(self) -> TextEmbedding:
        """The model as fastembed gives it, in the same session of the runtime."""
        bare: TextEmbedding = cast("Any", self.embedder)._text_embedding
        return bare

    async def index(self, account: Account) -> Cost:
        """Mirror what waits of one tenant."""
        self._execute(_RELEASE, account.tenant_id)
        outbox = PostgresOutbox(self.database)
        mirror = Mirror(
            outbox=outbox,
            vectors=self.vectors,
            embedder=self.embedder,
            sparse=Bm25Encoder(),
        )
        indexer = Indexer(outbox=outbox, mirror=mirror, owner="bench")
        watch = _Watch()
        while await indexer.step():
            pass
        return watch.cost()

    def chunk_texts(self, tenant_id: UUID) -> list[str]:
        """Return the texts of a tenant's chunks, in the order in which they were written."""
        return [row[0] for row in self._execute(_CHUNKS, tenant_id)]

    def table_bytes(self) -> int:
        """Return the size of the chunks with their indexes."""
        return int(self._execute(_TABLE_BYTES)[0][0])

    def _execute(self, statement: str, *params: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.stack.postgres.admin_url, autocommit=True) as connection:
            cursor = connection.execute(statement, params)
            return cursor.fetchall() if cursor.description else []


@click.command()
@click.option("--events", default=400, show_default=True, help="Of each round.")
@click.option("--rounds", default=5, show_default=True, help="Turns of the indexer and the model.")
def main(events: int, rounds: int) -> None:
    """Measure chunks per second, bytes per chunk, and what each stage takes."""
    report = Report("index", {"events": events, "rounds": rounds})
    with database_only() as stack:
        report.server_versions = stack.server_versions()
        accounts = _append(stack, events=events, rounds=rounds)
        asyncio.run(_measure(stack, accounts, report))
    report.write()


def _append(stack: Stack, *, events: int, rounds: int) -> list[Account]:
    with serving(stack):
        accounts = [stack.create_tenant(f"bench index {number}") for number in range(rounds)]
        administer(stack, HOLD_BACK)
        for seed, account in enumerate(accounts):
            with stack.client(account.api_key) as client:
                room = client.conversations.create().conversation_id
                mixture = mixed_events(events, seed=seed)
                for _ in client.events.stream_append(room, mixture, batch_size=APPEND_BATCH):
                    pass
        administer(stack, HAND_OUT)
    return accounts


async def _measure(stack: Stack, accounts: Sequence[Account], report: Report) -> None:
    async with AsyncExitStack() as opened:
        bench = await _open(stack, opened)
        await bench.embedder.embed([f"warm up {number}" for number in range(WARM_UP_TEXTS)])
        empty_bytes = _folder_bytes(stack.data_dir / "vectors"), bench.table_bytes()
        meter = CpuMeter({"postgres": stack.postgres_pid()})
        before = meter.read()
        with progress() as shown:
            for account in shown.track(accounts, description="rounds"):
                bench.rounds.append(await _round(bench, account))
        _add_ratios(bench.rounds, report)
        _add_stages(bench, spent(before, meter.read())["postgres"], report)
        await bench.vectors.close()
        _add_bytes(bench, empty_bytes, report)


async def _open(stack: Stack, opened: AsyncExitStack) -> Bench:
    threads = int(stack.storage_env()["ANNALS_STORAGE_EMBEDDING_THREADS"])
    embedder = await load_embedder(data_dir=stack.data_dir, threads=threads)
    opened.callback(embedder.close)
    database = Database(stack.postgres.app_url)
    opened.push_async_callback(database.close)
    vectors = EdgeVectorIndex(stack.data_dir / "vectors", dimensions=embedder.dimensions)
    await database.open()
    await vectors.open()
    return Bench(stack, database, vectors, embedder, StageClock())


async def _round(bench: Bench, account: Account) -> Round:
    model_s = _model_seconds()
    with bench.clock.running():
        indexer = await bench.index(account)
    model_s = _model_seconds() - model_s
    texts = bench.chunk_texts(account.tenant_id)
    in_order = sorted(texts, key=len)
    return Round(
        chunks=len(texts),
        indexer=indexer,
        model_s=model_s,
        defaults=_cost(lambda: list(bench.bare.embed(texts))),
        sorted_texts=_cost(lambda: list(bench.bare.embed(in_order, batch_size=RAW_BATCH_TEXTS))),
    )


class _Watch:
    def __init__(self) -> None:
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()

    def cost(self) -> Cost:
        return Cost(time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s)


def _cost(act: Callable[[], object]) -> Cost:
    watch = _Watch()
    act()
    return watch.cost()


def _model_seconds() -> float:
    [metric] = EMBED_SECONDS.collect()
    return float(next(s.value for s in metric.samples if s.name.endswith("_sum")))


def _add_ratios(rounds: Sequence[Round], report: Report) -> None:
    report.add("chunks", sum(each.chunks for each in rounds), "chunks")
    sides = {"indexer": "indexer", "fastembed": "defaults", "fastembed_sorted": "sorted_texts"}
    for name, side in sides.items():
        rates = [each.chunks / getattr(each, side).wall_s for each in rounds]
        report.add_runs(f"{name}_rate", rates, "chunks/s")
    for name, side in list(sides.items())[1:]:
        ratios = [getattr(each, side).wall_s / each.indexer.wall_s for each in rounds]
        report.add_runs(f"indexer_vs_{name}", ratios, "ratio", TARGET)
        ratios = [getattr(each, side).cpu_s / each.indexer.cpu_s for each in rounds]
        report.add_runs(f"indexer_vs_{name}_by_cpu_time", ratios, "ratio")
    shares = [each.model_s / each.indexer.wall_s for each in rounds]
    report.add_runs("model_busy", shares, "ratio")


def _add_stages(bench: Bench, postgres_s: float, report: Report) -> None:
    stages = {**bench.clock.cpu_seconds(), "postgres": postgres_s}
    for stage, seconds in stages.items():
        report.add(f"cpu_share_{stage}", seconds / sum(stages.values()), "ratio")


def _add_bytes(bench: Bench, empty: tuple[int, int], report: Report) -> None:
    chunks = sum(each.chunks for each in bench.rounds)
    engine_bytes = _folder_bytes(bench.stack.data_dir / "vectors") - empty[0]
    report.add("postgres_bytes_per_chunk", (bench.table_bytes() - empty[1]) / chunks, "bytes")
    report.add("engine_bytes_per_chunk", engine_bytes / chunks, "bytes")


def _folder_bytes(folder: Path) -> int:
    """Return what the files take on disk: the engine makes some longer than they are full."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
