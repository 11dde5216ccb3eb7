"""What the client of a Qdrant server promises besides the contract."""

from __future__ import annotations

import asyncio
import socket
from uuid import UUID

import pytest
from qdrant_client import AsyncQdrantClient, models
from tests.contract.vector_points import DIMENSIONS, ask, chunk, unit

from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.search import MemoryScope, SearchScope, Signal
from annals_storage.vectors.server import CollectionMismatchError, ServerVectorIndex, connect

TENANT = UUID(int=1)

# qdrant-client's local mode says that it scans instead of using payload indexes.
scans = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")


@pytest.fixture
async def client():
    local = AsyncQdrantClient(":memory:")
    yield local
    await local.close()


def index_over(client: AsyncQdrantClient, *, dimensions: int = DIMENSIONS) -> ServerVectorIndex:
    return ServerVectorIndex(client, collection="chunks", dimensions=dimensions)


@scans
async def test_the_collection_sits_behind_an_alias_and_keeps_tenants_apart(client):
    await index_over(client).open()
    (alias,) = (await client.get_aliases()).aliases
    assert (alias.alias_name, alias.collection_name) == ("chunks", "chunks_v1")
    params = (await client.get_collection("chunks")).config.params
    assert params.vectors[Signal.DENSE].size == DIMENSIONS
    assert params.sparse_vectors[Signal.BM25].modifier is models.Modifier.IDF


@scans
async def test_an_index_follows_its_alias_to_another_collection(client):
    index = index_over(client)
    await index.open()
    await index.upsert([chunk(TENANT)])
    params = (await client.get_collection("chunks")).config.params
    await client.create_collection(
        "chunks_v2",
        vectors_config=params.vectors,
        sparse_vectors_config=params.sparse_vectors,
    )
    moved = models.CreateAlias(collection_name="chunks_v2", alias_name="chunks")
    await client.update_collection_aliases([models.CreateAliasOperation(create_alias=moved)])

    await index.open()
    assert await index.count(SearchScope(TENANT)) == 0


@scans
async def test_a_start_that_died_half_way_is_finished(client):
    index = index_over(client)
    await index._create_collection()
    await index.open()
    await index.upsert([chunk(TENANT)])
    assert await index.count(SearchScope(TENANT)) == 1


@scans
async def test_a_collection_of_other_dimensions_is_refused(client):
    await index_over(client).open()
    with pytest.raises(CollectionMismatchError, match=r"holds vectors of 8 dimensions.*reindex"):
        await index_over(client, dimensions=16).open()


@scans
async def test_more_points_than_one_request_takes(client):
    index = index_over(client)
    await index.open()
    await index.upsert([chunk(TENANT) for _ in range(1_100)])
    assert await index.count(SearchScope(TENANT)) == 1_100


CALLS = {
    "open": lambda index: index.open(),
    "ping": lambda index: index.ping(),
    "upsert": lambda index: index.upsert([chunk(TENANT)]),
    "delete_events": lambda index: index.delete_events(TENANT, [TENANT]),
    "delete_chunks": lambda index: index.delete_chunks(TENANT, [TENANT]),
    "delete_memories": lambda index: index.delete_memories(TENANT, [TENANT]),
    "delete_conversation": lambda index: index.delete_conversation(TENANT, TENANT),
    "query": lambda index: index.query(ask(SearchScope(TENANT))),
    "query_memories": lambda index: index.query_memories(MemoryScope(TENANT), unit(1.0), 1),
    "count_points": lambda index: index.count_points(TENANT),
    "count": lambda index: index.count(SearchScope(TENANT)),
    "list_chunks": lambda index: index.list_chunks(TENANT, after=None, limit=1),
    "audit.count": lambda index: index.audit.count(),
    "audit.page": lambda index: index.audit.page(after=None, limit=1),
    "audit.page_of": lambda index: index.audit.page_of(TENANT, after=None, limit=1),
    "audit.get": lambda index: index.audit.get([TENANT]),
    "audit.delete": lambda index: index.audit.delete(str(TENANT), [TENANT]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_no_server_is_unavailable(call):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        index = index_over(connect(f"http://127.0.0.1:{port}", grpc_port=port, timeout_s=1))
        with pytest.raises(DependencyUnavailableError, match="vector engine"):
            await call(index)
        await index.close()


async def test_a_server_that_never_answers_is_unavailable_within_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        index = index_over(connect(f"http://127.0.0.1:{port}", grpc_port=port, timeout_s=1))
        async with asyncio.timeout(5):
            with pytest.raises(DependencyUnavailableError, match="vector engine"):
                await index.ping()
        await index.close()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_closed_index_is_unavailable(call):
    index = index_over(connect("http://127.0.0.1:1"))
    await index.close()
    await index.close()
    with pytest.raises(DependencyUnavailableError, match="vector engine"):
        await call(index)
