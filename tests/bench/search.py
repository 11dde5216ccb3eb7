"""`python -m tests.bench.search`: search, reads and contexts in one long conversation.

Search is compared with the least it could cost: embedding the query and asking the engine for the
same candidates. The engine serves one process, so this process asks a copy of it. Both take turns,
query by query.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

import click
import psycopg
import uvloop
from qdrant_edge import EdgeShard, QueryBatchRequest
from tests.bench.harness import Report, percentile, progress
from tests.bench.seeding import append_conversations, mirror_everything
from tests.bench.stack import Account, Stack, database_only, serving
from tests.bench.texts import questions

from annals_client import AnnalsClient
from annals_storage.domain.search import SearchScope, VectorQuery
from annals_storage.domain.search_parameters import DEFAULTS
from annals_storage.embedding.bm25 import Bm25Encoder
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.embedding.loading import load_embedder
from annals_storage.vectors.edge_requests import event_requests
from annals_storage.vectors.edge_shard import open_shard

BUDGET_TOKENS = 2_000
LAST_EVENTS = 50
WARM_UP_QUERIES = 20
SMALL, MEDIUM = 1_000, 10_000
_SIZE_BYTES = """
SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'annals' AND c.relkind = 'r'
"""


@dataclass(slots=True)
class Timings:
    """Milliseconds of one thing, in order."""

    ms: list[float] = field(default_factory=list)

    def time(self, act: Callable[[], object]) -> None:
        """Do it and keep how long it took."""
        begun = time.perf_counter()
        act()
        self.ms.append((time.perf_counter() - begun) * 1000)

    def p(self, percent: float) -> float:
        """Return a percentile."""
        return percentile(self.ms, percent)


@dataclass(slots=True)
class Measured:
    """Everything that is timed; contexts by the size of their conversation."""

    embedding: Timings = field(default_factory=Timings)
    engine: Timings = field(default_factory=Timings)
    search: Timings = field(default_factory=Timings)
    last_events: Timings = field(default_factory=Timings)
    contexts: dict[int, Timings] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawSearch:
    """The model and a copy of the engine, without anything of ours around them."""

    loop: asyncio.Runner
    embedder: FastembedEmbedder
    shard: EdgeShard
    scope: SearchScope
    sparse: Bm25Encoder = field(default_factory=Bm25Encoder)

    def time(self, query: str, measured: Measured) -> None:
        """Embed the query and ask for the candidates that a search asks for."""
        vector = None

        def embed() -> None:
            nonlocal vector
            vector = self.loop.run(self.embedder.embed([query]))[0]

        measured.embedding.time(embed)
        words = self.sparse.encode_query(query)
        wanted = VectorQuery(self.scope, DEFAULTS.min_candidates, dense=vector, bm25=words)
        requests = QueryBatchRequest([*event_requests(wanted).values()])
        measured.engine.time(lambda: self.shard.query_batch(requests))


@click.command()
@click.option("--events", default=20_000, show_default=True, help="Of the longest conversation.")
@click.option("--queries", default=200, show_default=True, help="Timed queries.")
def main(events: int, queries: int) -> None:
    """Measure search, reads, contexts and bytes per message."""
    sizes = sorted({SMALL, min(MEDIUM, events), events})
    report = Report("search", {"events": events, "queries": queries, "budget": BUDGET_TOKENS})
    with database_only() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        report.server_versions = stack.server_versions()
        account, ids, embedder = _filled(stack, loop, sizes)
        _add_sizes(stack, sum(sizes), report)
        scope = SearchScope(account.tenant_id, conversation_ids=(UUID(ids[events]),))
        shard = _copied_shard(stack, embedder.dimensions)
        raw = RawSearch(loop, embedder, shard, scope)
        with serving(stack), stack.client(account.api_key) as client:
            measured = _measure(client, raw, ids, queries)
        shard.close()
        embedder.close()
    _add_latencies(measured, events, report)
    report.write()


def _filled(
    stack: Stack, loop: asyncio.Runner, sizes: Sequence[int]
) -> tuple[Account, Mapping[int, str], FastembedEmbedder]:
    with serving(stack):
        account = stack.create_tenant("bench search")
        ids = append_conversations(stack, account, sizes)
    embedder = loop.run(load_embedder(data_dir=stack.data_dir, threads=2))
    loop.run(mirror_everything(stack, embedder, total=sum(sizes)))
    return account, ids, embedder


def _copied_shard(stack: Stack, dimensions: int) -> EdgeShard:
    copy = stack.data_dir / "vectors-copy"
    shutil.copytree(stack.data_dir / "vectors", copy)
    return open_shard(copy, dimensions=dimensions)


def _measure(
    client: AnnalsClient, raw: RawSearch, ids: Mapping[int, str], queries: int
) -> Measured:
    asked = list(questions(WARM_UP_QUERIES + queries))
    warm_up, timed = asked[:WARM_UP_QUERIES], asked[WARM_UP_QUERIES:]
    _ask_all(client, raw, ids, warm_up)
    return _ask_all(client, raw, ids, timed)


def _ask_all(
    client: AnnalsClient, raw: RawSearch, ids: Mapping[int, str], asked: Sequence[str]
) -> Measured:
    measured = Measured(contexts={size: Timings() for size in ids})
    with progress() as shown:
        for query in shown.track(asked, description="queries"):
            raw.time(query, measured)
            _ask(client, ids, query, measured)
    return measured


def _ask(client: AnnalsClient, ids: Mapping[int, str], query: str, measured: Measured) -> None:
    longest = ids[max(ids)]
    search = partial(client.search.events, query, conversation_ids=[longest])
    measured.search.time(search)
    measured.last_events.time(partial(_read_last, client, longest))
    for size, conversation_id in ids.items():
        # The search above left the query's vector in the cache: this is "beyond embedding".
        prepare = partial(client.context.prepare, conversation_id, budget_tokens=BUDGET_TOKENS)
        measured.contexts[size].time(partial(prepare, query=query))


def _read_last(client: AnnalsClient, conversation_id: str) -> object:
    events = client.events.list(
        conversation_id, order="descending", page_size=LAST_EVENTS, limit=LAST_EVENTS
    )
    return list(events)


def _add_latencies(measured: Measured, events: int, report: Report) -> None:
    raw = Timings([a + b for a, b in zip(measured.embedding.ms, measured.engine.ms, strict=True)])
    report.add("search_vs_raw_p50", measured.search.p(50) / raw.p(50), "ratio", "<= 1.5")
    for name, timings in (
        ("query_embedding", measured.embedding),
        ("raw_engine_query", measured.engine),
        ("raw_search", raw),
        ("search", measured.search),
    ):
        for percent in (50, 99):
            report.add(f"{name}_p{percent}", timings.p(percent), "ms")
    report.add(f"read_last_{LAST_EVENTS}_p50", measured.last_events.p(50), "ms", "<= 3")
    _add_contexts(measured.contexts, events, report)


def _add_contexts(contexts: Mapping[int, Timings], events: int, report: Report) -> None:
    for size, timings in contexts.items():
        targets = ("<= 25", "<= 50") if size == events else (None, None)
        for percent, target in zip((50, 99), targets, strict=True):
            name = f"prepare_context_{size}_events_p{percent}"
            report.add(name, timings.p(percent), "ms", target)
    growth = contexts[events].p(50) / contexts[SMALL].p(50)
    report.add(f"prepare_context_growth_from_{SMALL}_to_{events}", growth, "ratio", "<= 1.5")


def _add_sizes(stack: Stack, total: int, report: Report) -> None:
    with psycopg.connect(stack.postgres.admin_url, autocommit=True) as connection:
        # What autovacuum does within a minute: plans need statistics.
        connection.execute("VACUUM ANALYZE")
        row = connection.execute(_SIZE_BYTES).fetchone()
    tables_bytes = int(row[0]) if row else 0
    engine_bytes = _bytes_on_disk(stack.data_dir / "vectors")
    report.add("postgresql_bytes_per_message", tables_bytes / total, "bytes")
    report.add("engine_bytes_per_message", engine_bytes / total, "bytes")
    both = (tables_bytes + engine_bytes) / total
    report.add("storage_bytes_per_message", both, "bytes", "<= 6144")


def _bytes_on_disk(directory: Path) -> int:
    """Return what the files occupy, holes left out."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
