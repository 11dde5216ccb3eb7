"""What every vector engine must do: writing, querying, deleting, listing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import numpy as np
import pytest
from tests.contract import vector_engines
from tests.contract.vector_points import ask, chunk, found, ids, random_units, terms, unit

from annals_storage.domain.search import SearchScope, Signal, SparseVector, VectorQuery
from annals_storage.ports.vectors import VectorIndex


@pytest.fixture(params=vector_engines.ENGINES)
async def index(request, tmp_path):
    async with vector_engines.opened(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def tenant_id() -> UUID:
    return uuid4()


async def test_opening_twice_keeps_the_points(index: VectorIndex, tenant_id):
    await index.upsert([chunk(tenant_id)])
    await index.open()
    await index.ping()
    assert await index.count(SearchScope(tenant_id)) == 1


async def test_a_hit_says_where_it_comes_from(index: VectorIndex, tenant_id):
    point = chunk(tenant_id, seq=2**40, chunk_index=3)
    await index.upsert([point])
    (hit,) = (await index.query(ask(SearchScope(tenant_id), dense=unit(1.0))))[Signal.DENSE]
    assert (hit.chunk_id, hit.event_id, hit.conversation_id, hit.seq, hit.chunk_index) == (
        point.chunk_id,
        point.event_id,
        point.conversation_id,
        2**40,
        3,
    )


async def test_upsert_replaces_vectors_and_payload(index: VectorIndex, tenant_id):
    first = chunk(tenant_id, dense=unit(1.0), bm25=terms(1), user_id="before")
    await index.upsert([first])
    await index.upsert([replace(first, dense=unit(0.0, 1.0), bm25=terms(2), user_id=None)])

    answer = await index.query(ask(SearchScope(tenant_id), dense=unit(0.0, 1.0), bm25=terms(1, 2)))
    assert answer[Signal.DENSE][0].score == pytest.approx(1.0, abs=1e-3)
    assert len(answer[Signal.BM25]) == 1
    assert await index.count(SearchScope(tenant_id)) == 1
    assert await index.count(SearchScope(tenant_id, user_id="before")) == 0
    by_old_term = await index.query(ask(SearchScope(tenant_id), bm25=terms(1)))
    assert by_old_term == {Signal.BM25: []}


async def test_dense_scores_are_cosines_in_order(index: VectorIndex, tenant_id):
    vectors, query = random_units(1, 60), random_units(2, 1)[0]
    points = [chunk(tenant_id, dense=vector) for vector in vectors]
    await index.upsert(points)

    hits = (await index.query(ask(SearchScope(tenant_id), limit=10, dense=query)))[Signal.DENSE]
    cosines = {
        point.chunk_id: cosine for point, cosine in zip(points, vectors @ query, strict=True)
    }
    assert [hit.score for hit in hits] == pytest.approx(
        sorted(cosines.values(), reverse=True)[:10], abs=1e-3
    )
    assert [hit.score for hit in hits] == pytest.approx([cosines[i] for i in ids(hits)], abs=1e-3)


async def test_rare_and_frequent_terms_weigh_as_bm25_says(index: VectorIndex, tenant_id):
    common = [chunk(tenant_id, bm25=terms(1)) for _ in range(8)]
    rare = chunk(tenant_id, bm25=terms(2))
    heavy = chunk(tenant_id, bm25=SparseVector((1,), (2.0,)))
    await index.upsert([*common, rare, heavy])

    hits = (await index.query(ask(SearchScope(tenant_id), bm25=terms(1, 2))))[Signal.BM25]
    assert ids(hits)[:2] == [rare.chunk_id, heavy.chunk_id]
    assert all(hit.score > 0 for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_only_chunks_that_share_a_term_answer_bm25(index: VectorIndex, tenant_id):
    sharing, other = chunk(tenant_id, bm25=terms(1, 2)), chunk(tenant_id, bm25=terms(3))
    await index.upsert([sharing, other, chunk(tenant_id, bm25=SparseVector((), ()))])
    answer = await index.query(ask(SearchScope(tenant_id), bm25=terms(2, 9)))
    assert ids(answer[Signal.BM25]) == [sharing.chunk_id]


async def test_each_signal_answers_alone_or_together(index: VectorIndex, tenant_id):
    await index.upsert([chunk(tenant_id)])
    scope = SearchScope(tenant_id)
    assert set(await index.query(ask(scope, dense=unit(1.0)))) == {Signal.DENSE}
    assert set(await index.query(ask(scope, bm25=terms(7)))) == {Signal.BM25}
    assert set(await index.query(ask(scope))) == {Signal.DENSE, Signal.BM25}


async def test_limit_holds_per_signal(index: VectorIndex, tenant_id):
    await index.upsert([chunk(tenant_id) for _ in range(5)])
    answer = await index.query(ask(SearchScope(tenant_id), limit=3))
    assert {signal: len(hits) for signal, hits in answer.items()} == {
        Signal.DENSE: 3,
        Signal.BM25: 3,
    }


async def test_empty_inputs_do_nothing(index: VectorIndex, tenant_id):
    await index.upsert([chunk(tenant_id)])
    await index.upsert([])
    await index.delete_events(tenant_id, [])
    await index.delete_chunks(tenant_id, [])
    scope = SearchScope(tenant_id)
    nothing_to_match = ask(scope, bm25=SparseVector((), ()))
    assert await index.query(VectorQuery(scope, 5)) == {}
    assert await index.query(ask(scope, limit=0)) == {Signal.DENSE: [], Signal.BM25: []}
    assert await index.query(nothing_to_match) == {Signal.BM25: []}
    assert await index.count(scope) == 1


async def test_a_vector_of_another_length_is_refused_before_anything_is_written(
    index: VectorIndex, tenant_id
):
    wrong = chunk(tenant_id, dense=np.ones(3, np.float32))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        await index.upsert([chunk(tenant_id), wrong])
    with pytest.raises(ValueError, match=r"\(3,\)"):
        await index.query(ask(SearchScope(tenant_id), dense=wrong.dense))
    assert await index.count(SearchScope(tenant_id)) == 0


async def test_deletes_take_what_is_named_and_no_more(index: VectorIndex, tenant_id):
    event_id, conversation_id = uuid4(), uuid4()
    of_event = [chunk(tenant_id, event_id=event_id, chunk_index=i) for i in range(3)]
    of_conversation = [chunk(tenant_id, conversation_id=conversation_id) for _ in range(3)]
    alone, kept = chunk(tenant_id), chunk(tenant_id)
    await index.upsert([*of_event, *of_conversation, alone, kept])

    await index.delete_events(tenant_id, [event_id, uuid4()])
    assert await index.count(SearchScope(tenant_id)) == 5
    await index.delete_conversation(tenant_id, conversation_id)
    assert await index.count(SearchScope(tenant_id)) == 2
    await index.delete_chunks(tenant_id, [alone.chunk_id, uuid4()])
    assert await found(index, SearchScope(tenant_id)) == {kept.chunk_id}


async def test_pages_of_chunks_are_complete_and_ordered(index: VectorIndex, tenant_id):
    points = [chunk(tenant_id) for _ in range(23)]
    await index.upsert([*points, *(chunk(uuid4()) for _ in range(9))])
    expected = sorted((point.chunk_id, point.event_id) for point in points)

    listed: list[tuple[UUID, UUID]] = []
    while page := await index.list_chunks(
        tenant_id, after=listed[-1][0] if listed else None, limit=5
    ):
        assert len(page) <= 5
        listed += page
    assert listed == expected


async def test_a_page_goes_on_after_a_chunk_that_is_gone(index: VectorIndex, tenant_id):
    points = sorted((chunk(tenant_id) for _ in range(4)), key=lambda point: point.chunk_id)
    await index.upsert(points)
    await index.delete_chunks(tenant_id, [points[1].chunk_id])
    page = await index.list_chunks(tenant_id, after=points[1].chunk_id, limit=2)
    assert [chunk_id for chunk_id, _ in page] == [points[2].chunk_id, points[3].chunk_id]


async def test_upserts_and_queries_run_side_by_side(index: VectorIndex, tenant_id):
    batches = [[chunk(tenant_id) for _ in range(20)] for _ in range(10)]
    scope = SearchScope(tenant_id)
    await asyncio.gather(
        *(index.upsert(batch) for batch in batches),
        *(index.query(ask(scope)) for _ in range(20)),
    )
    assert await index.count(scope) == 200
