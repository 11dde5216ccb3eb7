"""Words looked up in PostgreSQL find what the engine finds by words, within bounds."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.support.appending import append, ids
from tests.support.branching import revert
from tests.support.changing import delete
from tests.support.indexing import indexed
from tests.support.memories import store
from tests.support.storage import RunningStorage, Tenant, fresh_tenant

from annals_client import assistant, tool_call, tool_result, user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.events import EventType, Role
from annals_storage.domain.lexical import query_terms
from annals_storage.domain.search import (
    MemoryScope,
    ScoredChunk,
    SearchScope,
    Signal,
    VectorQuery,
)
from annals_storage.postgres.hits import PostgresHits
from annals_storage.postgres.lexical import PostgresLexical

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
WORDS = ["owl", "heron", "beacon", "harbour", "猫", "Straße"]
EVERYTHING = 2_000
OWNERS: list[dict[str, str]] = [{"user_id": "alice"}, {"user_id": "bob"}, {"session_id": "s"}]


@dataclass(frozen=True, slots=True)
class Filled:
    """A tenant with branches, tools, owners and deletions; what scopes are made of."""

    tenant: Tenant
    tenant_id: UUID
    rooms: list[UUID]
    agents: list[UUID]
    event_ids: list[UUID]
    branched: UUID


def said(chance: random.Random, number: int) -> Any:
    words = " ".join(chance.sample(WORDS, 2))
    moment = NOON + timedelta(hours=number)
    kinds = (
        lambda: user(f"They saw {words}.", event_time=moment),
        lambda: assistant(f"It was {words}!", event_time=moment),
        lambda: tool_call(f"c{number}", chance.choice(["look", "ask"]), {"for": words}),
        lambda: tool_result(f"c{number - 1}", words, event_time=moment),
    )
    return kinds[number % 4]()


@pytest.fixture(scope="module")
async def filled(storage: RunningStorage) -> AsyncIterator[Filled]:
    chance = random.Random(7)
    async with fresh_tenant(storage) as tenant:
        rooms, agents, event_ids = [], [], []
        for owner in OWNERS:
            agent = await tenant.client.agents.create("an agent")
            made = await tenant.client.conversations.create(agent_id=agent.agent_id, **owner)
            events = [said(chance, number) for number in range(12)]
            event_ids += ids(await append(tenant.raw, made.conversation_id, *events))
            rooms.append(made.conversation_id)
            agents.append(agent.agent_id)
        await revert(tenant.raw, rooms[0], event_ids[5])
        after = [said(chance, number) for number in range(20, 24)]
        event_ids += ids(await append(tenant.raw, rooms[0], *after))
        await delete(tenant.raw, event_ids[13])
        await indexed(tenant)
        yield Filled(
            tenant,
            UUID(tenant.tenant_id),
            [UUID(room) for room in rooms],
            [UUID(agent) for agent in agents],
            [UUID(event_id) for event_id in event_ids],
            UUID(rooms[0]),
        )


def some(chance: random.Random, values: list[Any]) -> tuple[Any, ...]:
    return tuple(chance.sample(values, chance.randint(1, max(1, len(values) // 2))))


def conditions(chance: random.Random, filled: Filled) -> dict[str, Any]:
    moments = sorted(NOON + timedelta(hours=chance.randint(-1, 13)) for _ in range(2))
    return {
        "conversation_ids": some(chance, [*filled.rooms, uuid4()]),
        "agent_ids": some(chance, filled.agents),
        "user_id": chance.choice(["alice", "bob", "nobody"]),
        "session_id": "s",
        "types": some(chance, [EventType.MESSAGE, EventType.TOOL_CALL, EventType.TOOL_RESULT]),
        "roles": some(chance, [Role.USER, Role.ASSISTANT]),
        "tool_names": some(chance, ["look", "ask"]),
        "start_time": moments[0],
        "end_time": moments[1],
        "exclude_event_ids": some(chance, filled.event_ids),
        "event_ids": some(chance, filled.event_ids),
        "all_branches": True,
    }


async def scope_of(chance: random.Random, filled: Filled, hits: PostgresHits) -> SearchScope:
    """A scope of no, one or two conditions, or of a branch."""
    scope = SearchScope(filled.tenant_id)
    if chance.random() < 0.2:
        branch = chance.choice([1, 2])
        view = await hits.get_view(filled.tenant_id, filled.branched, branch)
        scope = replace(scope, conversation_ids=(filled.branched,), branch=branch, view=view)
    possible = conditions(chance, filled)
    if scope.branch is not None:
        del possible["conversation_ids"], possible["all_branches"]
    names = chance.sample(sorted(possible), chance.randint(0, 2))
    return replace(scope, **{name: possible[name] for name in names})


async def by_engine(storage: RunningStorage, scope: SearchScope, words: str) -> list[ScoredChunk]:
    encoded = storage.adapters.sparse.encode_query(words)
    query = VectorQuery(scope, EVERYTHING, bm25=encoded)
    return list((await storage.adapters.vectors.query(query))[Signal.BM25])


async def by_postgresql(
    storage: RunningStorage, scope: SearchScope, words: str, **bounds: int
) -> list[ScoredChunk]:
    terms = query_terms(scope.tenant_id, storage.adapters.sparse.encode_query(words))
    lexical = PostgresLexical(storage.adapters.database, **bounds)
    return await lexical.find_chunks(scope, terms, EVERYTHING, storage.adapters.embedder.model)


def places(chunks: list[ScoredChunk]) -> set[tuple[UUID, UUID, UUID, int, int]]:
    return {(c.chunk_id, c.event_id, c.conversation_id, c.seq, c.chunk_index) for c in chunks}


@pytest.mark.parametrize("seed", range(8))
async def test_every_scope_holds_the_same_here_and_in_the_engine(
    storage: RunningStorage, filled: Filled, seed: int
) -> None:
    chance, hits = random.Random(seed), PostgresHits(storage.adapters.database)
    found = 0

    for _ in range(12):
        scope = await scope_of(chance, filled, hits)
        words = " ".join(chance.sample(WORDS, chance.randint(1, 3)))
        here = await by_postgresql(storage, scope, words)
        assert places(here) == places(await by_engine(storage, scope, words)), (scope, words)
        found += len(here)

    assert found, "some scope of the twelve holds something"


async def test_scores_are_those_of_the_engine_as_far_as_weights_are_kept(
    storage: RunningStorage, filled: Filled
) -> None:
    scope = SearchScope(filled.tenant_id, all_branches=True)
    here = await by_postgresql(storage, scope, "owl beacon")
    there = {chunk.chunk_id: chunk.score for chunk in await by_engine(storage, scope, "owl beacon")}

    assert [chunk.score for chunk in here] == sorted((c.score for c in here), reverse=True)
    for chunk in here:
        # Weights are rounded, and the words of deleted events count among the tenant's here.
        assert chunk.score == pytest.approx(there[chunk.chunk_id], rel=0.05)


async def test_twice_the_same(storage: RunningStorage, filled: Filled) -> None:
    scope = SearchScope(filled.tenant_id)

    first = await by_postgresql(storage, scope, "owl heron beacon")

    assert await by_postgresql(storage, scope, "owl heron beacon") == first


async def test_frequent_words_are_weighed_as_far_as_the_bound(
    storage: RunningStorage, tenant: Tenant
) -> None:
    frequent = [user(f"The owl saw {number}.") for number in range(30)]
    await append(tenant.raw, "", *frequent, user("The owl met a heron."))
    await indexed(tenant)
    scope = SearchScope(UUID(tenant.tenant_id))

    rare_leads = await by_postgresql(storage, scope, "owl heron", max_rows=10)
    alone = await by_postgresql(storage, scope, "owl", max_rows=10)

    assert len(rare_leads) == 1, "the frequent word counts where the rare one has led"
    assert len(alone) == 10


async def test_of_a_long_query_some_words_are_looked_up_always_the_same(
    storage: RunningStorage, filled: Filled
) -> None:
    scope = SearchScope(filled.tenant_id)
    query = " ".join(["owl", *(f"word{number}" for number in range(5_000))])

    first = await by_postgresql(storage, scope, query)

    assert await by_postgresql(storage, scope, query) == first


@pytest.mark.parametrize("condition", ["terms && ARRAY[1, 2]", "terms @> ARRAY[1]"])
def test_the_index_is_used_by_the_owner_alone(postgres: LocalPostgres, condition: str) -> None:
    def plan(url: str) -> str:
        with psycopg.connect(url) as connection:
            connection.execute("SET enable_seqscan = off")
            query = f"EXPLAIN SELECT FROM annals.chunks WHERE {condition}"
            return repr(connection.execute(query).fetchall())

    assert "chunks_by_terms" in plan(postgres.owner_url)
    assert "chunks_by_terms" not in plan(postgres.app_url), "no need of the owner's functions then"


class TestMemories:
    @pytest.mark.parametrize(
        ("scope", "expected"),
        [
            ({}, {"a", "b"}),
            ({"tags": ("x",)}, {"a"}),
            ({"tags": ("x", "y")}, set()),
            ({"user_id": "alice"}, {"a"}),
            ({"session_id": "s"}, {"b"}),
            ({"agent_id": uuid4()}, set()),
            ({"conversation_ids": (uuid4(),)}, set()),
        ],
    )
    async def test_every_condition_holds(
        self,
        storage: RunningStorage,
        tenant: Tenant,
        other_tenant: Tenant,
        scope: dict[str, Any],
        expected: set[str],
    ) -> None:
        names: dict[UUID, str] = {}
        for name, tag, owner in [("a", "x", OWNERS[0]), ("b", "y", OWNERS[2])]:
            made = await tenant.client.conversations.create(**owner)
            room = made.conversation_id
            kept = await store(tenant, f"The owl {name}.", conversation_id=room, tags=[tag])
            names[UUID(kept.memory.memory_id)] = name
        await store(other_tenant, "The owl of somebody else.")
        await indexed(tenant)
        await indexed(other_tenant)
        tenant_id, adapters = UUID(tenant.tenant_id), storage.adapters

        found = await PostgresLexical(adapters.database).find_memories(
            MemoryScope(tenant_id, **scope),
            query_terms(tenant_id, adapters.sparse.encode_query("owl")),
            EVERYTHING,
            adapters.embedder.model,
        )

        assert {names[memory_id] for memory_id in found} == expected
