"""The engines under contract, each opened empty for one test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from qdrant_client import AsyncQdrantClient
from tests.contract.vector_points import DIMENSIONS

from annals_common.errors import DependencyUnavailableError
from annals_storage.ports.vectors import VectorIndex
from annals_storage.vectors.edge import EdgeVectorIndex
from annals_storage.vectors.edge_shard import shard_folder
from annals_storage.vectors.server import ServerVectorIndex, connect

SERVER_URL = os.environ.get("ANNALS_TEST_QDRANT_URL")

# qdrant-client's local mode says that it scans instead of using payload indexes.
_scans = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

ENGINES = [
    pytest.param("edge"),
    pytest.param("local", marks=_scans),
    *([pytest.param("server")] if SERVER_URL else []),
]


@asynccontextmanager
async def opened(engine: str, directory: Path) -> AsyncIterator[VectorIndex]:
    index = await _make(engine, directory)
    await index.open()
    try:
        yield index
    finally:
        await _let_go(index)


@asynccontextmanager
async def opened_beside(
    engine: str, directory: Path, dimensions: tuple[int, int]
) -> AsyncIterator[tuple[VectorIndex, VectorIndex]]:
    """Two generations of one installation, created from scratch."""
    first, second = _generations(engine, directory, dimensions)
    try:
        await first.open()
        await second.open()
        yield first, second
    finally:
        await _let_go(second)
        await _let_go(first)


def _generations(
    engine: str, directory: Path, dimensions: tuple[int, int]
) -> tuple[VectorIndex, VectorIndex]:
    if engine == "edge":
        first, second = (
            EdgeVectorIndex(shard_folder(directory, number), dimensions=length)
            for number, length in enumerate(dimensions, start=1)
        )
        return first, second
    local = AsyncQdrantClient(":memory:") if engine == "local" else None
    collection = f"contract_{uuid4().hex}"
    one, other = (
        ServerVectorIndex(
            local or connect(SERVER_URL or ""),
            collection=collection,
            dimensions=length,
            generation=number,
        )
        for number, length in enumerate(dimensions, start=1)
    )
    return one, other


async def _let_go(index: VectorIndex) -> None:
    """Leave nothing on a server that others use, too."""
    if isinstance(index, ServerVectorIndex):
        with suppress(DependencyUnavailableError):
            await index.drop()
    await index.close()


async def _make(engine: str, directory: Path) -> VectorIndex:
    if engine == "edge":
        return EdgeVectorIndex(directory / "shard", dimensions=DIMENSIONS)
    client = AsyncQdrantClient(":memory:") if engine == "local" else connect(SERVER_URL or "")
    collection = f"contract_{uuid4().hex}"
    return ServerVectorIndex(client, collection=collection, dimensions=DIMENSIONS)
