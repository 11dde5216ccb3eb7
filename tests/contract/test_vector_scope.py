"""What every vector engine must do: keep to the scope, and to the tenant above all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract import vector_engines
from tests.contract.vector_points import NOON, ask, chunk, found, in_scope, terms

from annals_storage.domain.events import EventType, Role
from annals_storage.domain.search import BranchPart, ChunkPoint, SearchScope, Signal
from annals_storage.ports.vectors import VectorIndex

MICROSECOND = timedelta(microseconds=1)
AGENTS = (uuid4(), uuid4())
CONVERSATIONS = (uuid4(), uuid4(), uuid4())
EVENTS = (uuid4(), uuid4(), uuid4())
TENANT = UUID(int=1)
OTHER_TENANT = UUID(int=2)
USERS = ("ana", "Ana", "Зоя", "李雷 🐉", "a'b\"c\\", "")
TOOLS = ("search", "sear", "检索")


@pytest.fixture(params=vector_engines.ENGINES)
async def index(request, tmp_path):
    async with vector_engines.opened(request.param, tmp_path) as opened:
        yield opened


FIELDS = [
    ({"conversation_id": CONVERSATIONS[0]}, {"conversation_ids": CONVERSATIONS[:2]}),
    ({"agent_id": AGENTS[0]}, {"agent_ids": (AGENTS[0], uuid4())}),
    ({"user_id": "李雷 🐉"}, {"user_id": "李雷 🐉"}),
    ({"session_id": "s-1"}, {"session_id": "s-1"}),
    (
        {"event_type": EventType.TOOL_CALL},
        {"types": (EventType.TOOL_CALL, EventType.TOOL_RESULT)},
    ),
    ({"role": Role.ASSISTANT}, {"roles": (Role.ASSISTANT,)}),
    ({"tool_name": "检索"}, {"tool_names": ("检索", "search")}),
    ({"event_time": NOON + MICROSECOND}, {"start_time": NOON + MICROSECOND}),
    ({"event_time": NOON - MICROSECOND}, {"end_time": NOON}),
]


@pytest.mark.parametrize(("fields", "condition"), FIELDS, ids="-".join)
async def test_each_condition_alone(index: VectorIndex, fields, condition):
    match, other = chunk(TENANT, **fields), chunk(TENANT)
    await index.upsert([match, other])
    assert await found(index, SearchScope(TENANT)) == {match.chunk_id, other.chunk_id}
    assert await found(index, SearchScope(TENANT, **condition)) == {match.chunk_id}


async def test_excluded_events_stay_out(index: VectorIndex):
    kept, excluded = chunk(TENANT), chunk(TENANT)
    await index.upsert([kept, excluded])
    scope = SearchScope(TENANT, exclude_event_ids=(excluded.event_id, uuid4()))
    assert await found(index, scope) == {kept.chunk_id}


async def test_the_start_is_in_the_range_and_the_end_is_not(index: VectorIndex):
    moments = [NOON + i * MICROSECOND for i in range(4)]
    points = [chunk(TENANT, event_time=moment) for moment in moments]
    await index.upsert(points)
    scope = SearchScope(TENANT, start_time=moments[1], end_time=moments[3])
    assert await found(index, scope) == {points[1].chunk_id, points[2].chunk_id}


async def test_a_tenant_never_sees_another(index: VectorIndex):
    ours = [chunk(TENANT) for _ in range(3)]
    theirs = [replace(point, tenant_id=OTHER_TENANT, chunk_id=uuid4()) for point in ours]
    await index.upsert([*ours, *theirs])
    shared = SearchScope(TENANT, conversation_ids=tuple(p.conversation_id for p in theirs))

    for scope in (SearchScope(TENANT), shared):
        assert await found(index, scope) == {point.chunk_id for point in ours}
    listed = await index.list_chunks(TENANT, after=None, limit=100)
    assert {chunk_id for chunk_id, _ in listed} == {point.chunk_id for point in ours}


async def test_a_tenant_cannot_delete_from_another(index: VectorIndex):
    theirs = chunk(OTHER_TENANT)
    await index.upsert([theirs])
    await index.delete_events(TENANT, [theirs.event_id])
    await index.delete_chunks(TENANT, [theirs.chunk_id])
    await index.delete_conversation(TENANT, theirs.conversation_id)
    assert await found(index, SearchScope(OTHER_TENANT)) == {theirs.chunk_id}


async def test_what_others_store_does_not_move_a_score(index: VectorIndex):
    await index.upsert([chunk(TENANT, bm25=terms(1)), chunk(TENANT, bm25=terms(2))])
    query = ask(SearchScope(TENANT), bm25=terms(1))
    alone = (await index.query(query))[Signal.BM25][0].score
    await index.upsert([chunk(OTHER_TENANT, bm25=terms(1)) for _ in range(50)])
    assert (await index.query(query))[Signal.BM25][0].score == pytest.approx(alone)


maybe = st.one_of
times = st.integers(-3, 3).map(lambda us: NOON + us * MICROSECOND)
points = st.builds(
    chunk,
    st.sampled_from((TENANT, OTHER_TENANT)),
    chunk_id=st.uuids(version=4),
    conversation_id=st.sampled_from(CONVERSATIONS),
    event_id=st.sampled_from(EVENTS),
    event_type=st.sampled_from(EventType),
    event_time=times,
    agent_id=maybe(st.none(), st.sampled_from(AGENTS)),
    user_id=maybe(st.none(), st.sampled_from(USERS)),
    session_id=maybe(st.none(), st.sampled_from(("s-1", "s-2"))),
    branch=st.integers(1, 4),
    seq=st.integers(1, 9),
    current=st.booleans(),
    role=maybe(st.none(), st.sampled_from(Role)),
    tool_name=maybe(st.none(), st.sampled_from(TOOLS)),
)


def some(values):
    return st.lists(st.sampled_from(values), min_size=1, max_size=2).map(tuple)


views = st.lists(
    st.builds(
        lambda branch, after, length: BranchPart(branch, after, after + length),
        st.integers(1, 4),
        st.integers(0, 8),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=3,
).map(tuple)

CONDITIONS = {
    "conversation_ids": some(CONVERSATIONS),
    "agent_ids": some(AGENTS),
    "user_id": st.sampled_from(USERS),
    "session_id": st.just("s-1"),
    "types": some(list(EventType)),
    "roles": some(list(Role)),
    "tool_names": some(TOOLS),
    "start_time": times,
    "end_time": times,
    "exclude_event_ids": some(EVENTS),
    "view": views,
    "all_branches": st.just(True),
}


def scope_with(conditions: set[str]) -> st.SearchStrategy[SearchScope]:
    both = {"view", "all_branches"} <= conditions
    chosen = {name: CONDITIONS[name] for name in conditions if not (both and name == "view")}
    return st.builds(SearchScope, st.sampled_from((TENANT, OTHER_TENANT)), **chosen)


# More conditions at once would leave nothing to find in most examples.
scopes = st.sets(st.sampled_from(sorted(CONDITIONS)), max_size=3).flatmap(scope_with)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    batch=st.lists(points, min_size=1, max_size=30, unique_by=lambda point: point.chunk_id),
    asked=st.lists(scopes, min_size=1, max_size=6),
)
async def test_scopes_mean_what_plain_python_says(
    index: VectorIndex, batch: list[ChunkPoint], asked: list[SearchScope]
):
    await index.upsert(batch)
    for scope in asked:
        expected = {point.chunk_id for point in batch if in_scope(point, scope)}
        assert await found(index, scope) == expected
    for tenant_id in (TENANT, OTHER_TENANT):
        await index.delete_chunks(tenant_id, [point.chunk_id for point in batch])
