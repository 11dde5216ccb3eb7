"""`python -m tests.bench.search`: search and reads, in one long conversation and in an engine of
many tenants; whether filters cost hits; bytes per message.

Search is compared with the least it could cost: embedding the query and asking the engine for the
same candidates. The engine serves one process, so this process asks a copy of it. Both take turns,
query by query. What is searched is written straight into the tables and the engine; the bytes are
those of messages that were appended and mirrored by the services' own code.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import click
import psycopg
import uvloop
from tests.bench.crowd import Crowd
from tests.bench.harness import Report, progress
from tests.bench.points import add_chunks, add_points, open_edge, pool_of
from tests.bench.raw_search import Compared, RawSearch, Timings, copied_shard
from tests.bench.recall import Points, add_recalls
from tests.bench.rows import conversations, settle
from tests.bench.seeding import append_conversations, mirror_everything
from tests.bench.stack import Account, Stack, database_only, serving
from tests.bench.texts import questions

from annals_client import AnnalsClient
from annals_storage.domain.search import SearchScope
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.embedding.loading import load_embedder
from annals_storage.ports.vectors import VectorIndex
from annals_storage.vectors.server import ServerVectorIndex, connect

LAST_EVENTS = 50
WARM_UP_QUERIES = 20
SMALL, MEDIUM = 1_000, 10_000
MAX_APPENDED = 20_000
"""Messages the bytes are measured of."""
SHARES = (0.001, 0.01, 0.1)
RECALL_QUERIES = 50
SERVER_URL = os.environ.get("ANNALS_TEST_QDRANT_URL")
_SIZE_BYTES = """
SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'annals' AND c.relkind = 'r'
"""


@dataclass(slots=True)
class Measured:
    """Everything that is timed."""

    compared: Compared = field(default_factory=Compared)
    last_events: Timings = field(default_factory=Timings)


@dataclass(frozen=True, slots=True)
class Filled:
    """The tenant with the long conversation: `ids` by size, `shares` by share of its events."""

    account: Account
    ids: Mapping[int, str]
    shares: Mapping[float, str]
    crowd: Crowd


@click.command()
@click.option("--events", default=20_000, show_default=True, help="Of the longest conversation.")
@click.option("--tenants", default=100, show_default=True, help="Of a thousand events each.")
@click.option("--queries", default=200, show_default=True, help="Timed queries.")
def main(events: int, tenants: int, queries: int) -> None:
    """Measure search, reads, recall and bytes per message."""
    settings = {"events": events, "tenants": tenants, "queries": queries}
    report = Report("search", settings)
    with database_only() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        report.server_versions = stack.server_versions()
        embedder = loop.run(load_embedder(data_dir=stack.data_dir, threads=2))
        _add_bytes(stack, loop, embedder, min(MAX_APPENDED, events), report)
        filled = _rows(stack, events, tenants)
        loop.run(_add_recall(stack, embedder, filled, report))
        settle(stack)
        shard = copied_shard(stack, embedder.dimensions)
        raw = RawSearch(loop, embedder, shard)
        with serving(stack):
            _measure(stack, raw, filled, queries, report)
        shard.close()
        embedder.close()
    report.write()


def _rows(stack: Stack, events: int, tenants: int) -> Filled:
    sizes = sorted({SMALL, min(MEDIUM, events), events})
    total = sum(sizes) / (1 - sum(SHARES))
    with serving(stack):
        account = stack.create_tenant("bench search")
        parts = [round(share * total) for share in SHARES]
        rooms = conversations(stack, account, [*sizes, *parts])
        crowd = Crowd.created(stack, tenants)
    ids = dict(zip(sizes, rooms[: len(sizes)], strict=True))
    return Filled(account, ids, dict(zip(SHARES, rooms[len(sizes) :], strict=True)), crowd)


async def _add_recall(
    stack: Stack, embedder: FastembedEmbedder, filled: Filled, report: Report
) -> None:
    """Write chunks and points; compare what the engines find with an exact search."""
    pool = await pool_of(embedder)
    rooms = [*filled.ids.values(), *filled.shares.values()]
    add_chunks(stack, pool, [*rooms, *filled.crowd.conversation_ids])
    queries = [*await embedder.embed(list(questions(RECALL_QUERIES, seed=4)))]
    async with open_edge(stack, embedder.dimensions) as index:
        async for _ in add_points(stack, index, pool, filled.crowd.conversation_ids):
            pass
        points = await Points.collected(add_points(stack, index, pool, rooms))
        await add_recalls("edge", index, points, filled.shares, queries, report)
    if SERVER_URL:
        async with _server(SERVER_URL, embedder.dimensions) as index:
            await index.upsert(points.points)
            await add_recalls("server", index, points, filled.shares, queries, report)


@asynccontextmanager
async def _server(url: str, dimensions: int) -> AsyncIterator[VectorIndex]:
    """Open a collection of its own; it goes at the end."""
    name, client = f"bench_{uuid4().hex}", connect(url, timeout_s=60)
    index = ServerVectorIndex(client, collection=name, dimensions=dimensions)
    await index.open()
    try:
        yield index
    finally:
        await client.delete_collection(f"{name}_v1")
        await index.close()


def _measure(stack: Stack, raw: RawSearch, filled: Filled, queries: int, report: Report) -> None:
    asked = list(questions(WARM_UP_QUERIES + queries))
    with stack.client(filled.account.api_key) as client:
        _ask_all(client, raw, filled, asked[:WARM_UP_QUERIES])
        measured = _ask_all(client, raw, filled, asked[WARM_UP_QUERIES:])
    _add_latencies(measured, report)
    if filled.crowd.accounts:
        filled.crowd.measure(stack, raw, queries, report)


def _ask_all(
    client: AnnalsClient, raw: RawSearch, filled: Filled, asked: Sequence[str]
) -> Measured:
    measured = Measured()
    longest = filled.ids[max(filled.ids)]
    scope = SearchScope(filled.account.tenant_id, conversation_ids=(UUID(longest),))
    with progress() as shown:
        for query in shown.track(asked, description="queries"):
            raw.time(query, scope, measured.compared)
            search = partial(client.search.events, query, conversation_ids=[longest])
            measured.compared.search.time(search)
            measured.last_events.time(partial(_read_last, client, longest))
    return measured


def _read_last(client: AnnalsClient, conversation_id: str) -> object:
    events = client.events.list(
        conversation_id, order="descending", page_size=LAST_EVENTS, limit=LAST_EVENTS
    )
    return list(events)


def _add_latencies(measured: Measured, report: Report) -> None:
    measured.compared.add_to(report)
    report.add(f"read_last_{LAST_EVENTS}_p50", measured.last_events.p(50), "ms", "<= 3")


def _add_bytes(
    stack: Stack, loop: asyncio.Runner, embedder: FastembedEmbedder, messages: int, report: Report
) -> None:
    """Append messages, have them mirrored, and add what they occupy."""
    with serving(stack):
        append_conversations(stack, stack.create_tenant("bench bytes"), [messages])
    loop.run(mirror_everything(stack, embedder, total=messages))
    settle(stack)
    with psycopg.connect(stack.postgres.admin_url) as connection:
        row = connection.execute(_SIZE_BYTES).fetchone()
    tables_bytes = int(row[0]) if row else 0
    engine_bytes = _bytes_on_disk(stack.data_dir / "vectors")
    report.add("postgresql_bytes_per_message", tables_bytes / messages, "bytes")
    report.add("engine_bytes_per_message", engine_bytes / messages, "bytes")
    both = (tables_bytes + engine_bytes) / messages
    report.add("storage_bytes_per_message", both, "bytes", "<= 6144")


def _bytes_on_disk(directory: Path) -> int:
    """Return what the files occupy, holes left out."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
