"""The least a search could cost: embedding the query and asking the engine for candidates."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from qdrant_edge import EdgeShard, QueryBatchRequest
from tests.bench.harness import Report, percentile
from tests.bench.stack import Stack

from annals_storage.domain.search import SearchScope, VectorQuery
from annals_storage.embedding.bm25 import Bm25Encoder
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.vectors.edge_requests import event_requests
from annals_storage.vectors.edge_shard import open_shard

ROUNDS = 4
CANDIDATES = 200
"""Of each signal, as a search for ten hits asks for."""
TARGET = "<= 1.5"


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

    def rounds(self) -> list[float]:
        """Return the median of each of `ROUNDS` stretches."""
        step = max(1, len(self.ms) // ROUNDS)
        return [percentile(self.ms[i : i + step], 50) for i in range(0, ROUNDS * step, step)]


@dataclass(slots=True)
class Compared:
    """Searches and what each would have cost at least, query by query."""

    embedding: Timings = field(default_factory=Timings)
    engine: Timings = field(default_factory=Timings)
    search: Timings = field(default_factory=Timings)

    def add_to(self, report: Report, prefix: str = "") -> None:
        """Add the ratio of medians, of rounds of neighbouring queries, and all latencies."""
        both = zip(self.embedding.ms, self.engine.ms, strict=True)
        raw = Timings([embedding + engine for embedding, engine in both])
        pairs = zip(self.search.rounds(), raw.rounds(), strict=True)
        ratios = [ours / theirs for ours, theirs in pairs]
        report.add_runs(f"{prefix}search_vs_raw_p50", ratios, "ratio", TARGET)
        for name, timings in (
            ("query_embedding", self.embedding),
            ("raw_engine_query", self.engine),
            ("raw_search", raw),
            ("search", self.search),
        ):
            for percent in (50, 99):
                report.add(f"{prefix}{name}_p{percent}", timings.p(percent), "ms")


@dataclass(frozen=True, slots=True)
class RawSearch:
    """The model and a copy of the engine, without anything of ours around them."""

    loop: asyncio.Runner
    embedder: FastembedEmbedder
    shard: EdgeShard
    sparse: Bm25Encoder = field(default_factory=Bm25Encoder)

    def time(self, query: str, scope: SearchScope, compared: Compared) -> None:
        """Embed the query and ask for the candidates that a search asks for."""
        vector = None

        def embed() -> None:
            nonlocal vector
            vector = self.loop.run(self.embedder.embed([query]))[0]

        compared.embedding.time(embed)
        words = self.sparse.encode_query(query)
        wanted = VectorQuery(scope, CANDIDATES, dense=vector, bm25=words)
        requests = QueryBatchRequest([*event_requests(wanted).values()])
        compared.engine.time(lambda: self.shard.query_batch(requests))


def copied_shard(stack: Stack, dimensions: int) -> EdgeShard:
    """Open a copy of the engine's files: they serve one process."""
    copy = stack.data_dir / "vectors-copy"
    shutil.copytree(stack.data_dir / "vectors", copy)
    return open_shard(copy, dimensions=dimensions)
