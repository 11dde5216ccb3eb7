"""The engines under contract, each opened empty for one test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from qdrant_client import AsyncQdrantClient
from tests.contract.vector_points import DIMENSIONS

from annals_storage.ports.vectors import VectorIndex
from annals_storage.vectors.edge import EdgeVectorIndex
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
        await index.close()


async def _make(engine: str, directory: Path) -> VectorIndex:
    if engine == "edge":
        return EdgeVectorIndex(directory / "shard", dimensions=DIMENSIONS)
    client = AsyncQdrantClient(":memory:") if engine == "local" else connect(SERVER_URL or "")
    collection = f"contract_{uuid4().hex}"
    return ServerVectorIndex(client, collection=collection, dimensions=DIMENSIONS)
