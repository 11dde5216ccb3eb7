"""The vector engine is shut or stuck: searches go on in PostgreSQL, writes go on, and it mends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from tests.support.appending import append, empty_conversation, ids
from tests.support.changing import delete, edit, revert
from tests.support.context import running_context
from tests.support.health import SERVING, status
from tests.support.indexing import EmbeddingWork, indexed
from tests.support.memories import axis, find, store
from tests.support.outages import Interruptible, interruptible_storage
from tests.support.raw import failure
from tests.support.scratch import run
from tests.support.storage import (
    ADMIN_KEY,
    RunningStorage,
    Tenant,
    fresh_tenant,
    storage_settings,
)
from tests.support.waiting import eventually

from annals.storage.v1.erasure_service_pb2 import EraseEventRequest
from annals_client import AsyncAnnalsClient, user
from annals_local.postgres import LocalPostgres
from annals_storage.commands import engine_first
from annals_storage.commands.engine_first import BREAKER_OPEN, FALLBACKS, VECTOR_ENGINE
from annals_storage.commands.freshness import FRESHNESS_TIMEOUT, FRESHNESS_TIMEOUT_SECONDS
from annals_storage.postgres.outbox import PostgresOutbox

MODES = ["dense", "lexical", "hybrid"]
BEES = "My sister Ingrid keeps bees on the roof of her house in Bergen."
FACTS = [
    BEES,
    "The invoice 2024-0417 was paid twice by mistake.",
    "Our cat refuses to eat anything but salmon.",
]
ENGINE_TIMEOUT_MS = 300
_KEPT = "SELECT count(*) AS kept FROM annals.chunks WHERE tenant_id = %s AND terms IS NOT NULL"


@pytest.fixture(scope="module")
async def running(
    own_postgres: LocalPostgres, storage: RunningStorage, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[RunningStorage, Interruptible]]:
    path = tmp_path_factory.mktemp("outage")
    (path / "models").symlink_to(storage.data_dir / "models")
    settings = storage_settings(own_postgres, path, engine_timeout_ms=ENGINE_TIMEOUT_MS)
    async with interruptible_storage(settings) as both:
        yield both


@pytest.fixture
def engine(running: tuple[RunningStorage, Interruptible]) -> Interruptible:
    return running[1]


@pytest.fixture
async def tenant(
    running: tuple[RunningStorage, Interruptible], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Tenant]:
    """A tenant, of a service that asks an engine it gave up on again at once."""
    monkeypatch.setattr(engine_first, "PAUSE_SECONDS", 0.0)
    async with fresh_tenant(running[0]) as it:
        yield it


async def found(tenant: Tenant, query: str, **fields: Any) -> tuple[list[str], list[str]]:
    """What is found, and why it is less than asked for."""
    answer = await tenant.client.search.events(query, **fields)
    return [hit.event.message.content for hit in answer.hits], list(answer.degraded)


async def remember(tenant: Tenant, *texts: str) -> list[str]:
    """The ids of indexed messages of one conversation."""
    stored = await append(tenant.raw, "", *[user(text) for text in texts])
    await indexed(tenant)
    return ids(stored)


async def kept(postgres: LocalPostgres, tenant: Tenant) -> int:
    """How many chunks of the tenant PostgreSQL holds the words of."""
    [row] = await asyncio.to_thread(run, postgres.admin_url, _KEPT, [tenant.tenant_id])
    return int(row["kept"])


class TestSearch:
    @pytest.mark.parametrize("mode", MODES)
    async def test_goes_on_by_words_and_says_so(
        self, tenant: Tenant, engine: Interruptible, mode: str
    ) -> None:
        await remember(tenant, *FACTS)

        async with engine.down():
            down = await found(tenant, "Who keeps bees in Bergen?", mode=mode)
        up = await found(tenant, "Who keeps bees in Bergen?", mode=mode)

        assert down == ([BEES], [VECTOR_ENGINE])
        assert up[0][0] == BEES
        assert up[1] == []

    async def test_scores_are_those_of_the_mode(
        self, tenant: Tenant, engine: Interruptible
    ) -> None:
        await remember(tenant, *FACTS)
        search = tenant.client.search.events
        [cosine, *_] = (await search("bees in Bergen", mode="dense", explain=True)).hits

        async with engine.down():
            [dense] = (await search("bees in Bergen", mode="dense", explain=True)).hits
            [hybrid] = (await search("bees in Bergen", explain=True)).hits
            nothing = await search("bees in Bergen", mode="dense", min_score=0.99)

        assert dense.score == pytest.approx(cosine.score, abs=0.002)
        signals = {part.signal for part in hybrid.components}
        assert {"dense", "bm25", "maxsim"} <= signals
        assert not nothing.hits

    async def test_a_stuck_engine_is_not_waited_for_and_keeps_no_call(
        self, tenant: Tenant, engine: Interruptible
    ) -> None:
        await remember(tenant, *FACTS)

        async with engine.stuck():
            begun = time.monotonic()
            answers = await asyncio.gather(*[found(tenant, "salmon", timeout=60) for _ in range(8)])
            took = time.monotonic() - begun
            waiting = engine.held_calls

        assert {(tuple(hits), tuple(why)) for hits, why in answers} == {
            ((FACTS[2],), (VECTOR_ENGINE,))
        }
        assert took < 30, "PostgreSQL answered; nobody waited for the end of the call"
        assert waiting == 0

    async def test_half_of_a_short_deadline_is_left_to_postgresql(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: list[float] = []
        limit = engine_first.EngineFirst._limit

        def noted(self: engine_first.EngineFirst, expires_at: float | None) -> float:
            given.append(limit(self, expires_at))
            return given[-1]

        monkeypatch.setattr(engine_first.EngineFirst, "_limit", noted)
        await remember(tenant, *FACTS)
        await found(tenant, "salmon", timeout=0.5)

        assert 0 < given[-1] <= 0.25

    async def test_what_is_gone_is_not_found(self, tenant: Tenant, engine: Interruptible) -> None:
        room = await empty_conversation(tenant)
        words = ["owl first", "owl deleted", "owl erased", "owl edited", "owl abandoned"]
        stored = ids(await append(tenant.raw, room, *[user(text) for text in words]))
        await indexed(tenant)

        async with engine.down():
            await delete(tenant.raw, stored[1])
            await failure(tenant.raw.call("EraseEvent", EraseEventRequest(event_id=stored[2])))
            await edit(tenant.raw, stored[3], user("a heron now"))
            await eventually(
                lambda: found(tenant, "owl"), lambda now: now[0] == ["owl first", "owl abandoned"]
            )
            before = await found(tenant, "heron")
            await revert(tenant.raw, room, stored[0])
            after = await found(tenant, "owl")

        assert before == (["a heron now"], [VECTOR_ENGINE])
        assert after == (["owl first"], [VECTOR_ENGINE])

    async def test_the_status_of_the_service_stays_serving(
        self, tenant: Tenant, engine: Interruptible
    ) -> None:
        async with engine.down():
            await engine_asked(engine, "ping", tenant)
            assert await status(tenant) == SERVING


async def engine_asked(engine: Interruptible, name: str, tenant: Tenant) -> None:
    """Give the indexer something to do, and wait until it has asked the engine in vain."""
    before = engine.calls.count(name)
    await append(tenant.raw, "", user("something to index"))
    await eventually(
        lambda: asyncio.sleep(0, engine.calls.count(name)), lambda count: count > before + 1
    )


class TestWrites:
    async def test_go_on_are_found_by_words_and_embedded_once(
        self, tenant: Tenant, engine: Interruptible, own_postgres: LocalPostgres
    ) -> None:
        with EmbeddingWork() as work:
            async with engine.down():
                for number in range(3):
                    await append(tenant.raw, "", user(f"A heron, number {number}."))
                    await eventually(
                        lambda: kept(own_postgres, tenant), lambda now, n=number: now == n + 1
                    )
                down = await found(tenant, "heron", limit=10)
            await indexed(tenant)
        up = await found(tenant, "heron", limit=10)

        assert (len(down[0]), down[1]) == (3, [VECTOR_ENGINE])
        assert (sorted(up[0]), up[1]) == (sorted(down[0]), [])
        assert work.embedded == 3

    async def test_are_found_at_once_by_who_wants_to_read_them(
        self, tenant: Tenant, engine: Interruptible
    ) -> None:
        async with engine.down():
            stored = await append(tenant.raw, "", user("A heron on the pier."))
            begun = time.monotonic()
            hits, why = await found(
                tenant,
                "heron",
                conversation_ids=[stored.conversation_id],
                freshness="read-your-writes",
                timeout=60,
            )
            took = time.monotonic() - begun
        await indexed(tenant)

        assert hits == ["A heron on the pier."]
        assert set(why) == {FRESHNESS_TIMEOUT, VECTOR_ENGINE}
        assert took < FRESHNESS_TIMEOUT_SECONDS, "the engine was waited for"

    async def test_reindexing_gives_words_to_what_has_none(
        self,
        running: tuple[RunningStorage, Interruptible],
        tenant: Tenant,
        engine: Interruptible,
        own_postgres: LocalPostgres,
    ) -> None:
        await remember(tenant, *FACTS)
        await store(tenant, "Ingrid likes strawberries.")
        await indexed(tenant)
        for table in ("chunks", "memories"):
            forget = f"UPDATE annals.{table} SET terms = NULL, term_weights = NULL"
            await asyncio.to_thread(run, own_postgres.admin_url, forget)
        async with engine.down():
            before = (await found(tenant, "salmon"))[0]

        outbox = PostgresOutbox(running[0].adapters.database)
        await outbox.enqueue_tenant(UUID(tenant.tenant_id))
        await indexed(tenant)

        async with engine.down():
            after = (await found(tenant, "salmon"))[0]
            memories = await find(tenant, "strawberries", freshness="SEARCH_FRESHNESS_EVENTUAL")
        assert (before, after) == ([], [FACTS[2]])
        assert [hit.memory.content for hit in memories.hits] == ["Ingrid likes strawberries."]

    async def test_one_of_a_batch_that_only_the_engine_can_do_holds_up_nothing(
        self, tenant: Tenant, engine: Interruptible
    ) -> None:
        [gone, _] = await remember(tenant, "owl to be deleted", "owl that stays")

        async with engine.down():
            await delete(tenant.raw, gone)
            await append(tenant.raw, "", user("owl that comes"))
            await eventually(
                lambda: found(tenant, "owl"),
                lambda now: sorted(now[0]) == ["owl that comes", "owl that stays"],
            )
        await indexed(tenant)

        assert sorted((await found(tenant, "owl"))[0]) == ["owl that comes", "owl that stays"]
        status = await tenant.client.index.status()
        assert status.point_count == status.chunk_count == 2


class TestMemories:
    async def test_are_found_by_words_with_their_cosines(
        self, tenant: Tenant, engine: Interruptible
    ) -> None:
        await store(tenant, "The ferry to Bergen leaves at noon.", tags=["travel"])
        await store(tenant, "Ingrid likes strawberries.")
        await indexed(tenant)
        eventual = {"freshness": "SEARCH_FRESHNESS_EVENTUAL"}
        up = await find(tenant, "When does the ferry leave?", **eventual)

        async with engine.down():
            down = await find(tenant, "When does the ferry leave?", **eventual)
            tagged = await find(tenant, "ferry strawberries", tags=["travel"], threshold=0.0)
            by_vector = await failure(find(tenant, query_embedding=axis(1), **eventual))

        assert list(up.degraded) == []
        assert list(down.degraded) == [VECTOR_ENGINE]
        [hit], [expected] = down.hits, up.hits
        assert hit.memory == expected.memory
        assert hit.similarity == pytest.approx(expected.similarity, abs=0.002)
        assert [hit.memory.content for hit in tagged.hits] == [expected.memory.content]
        assert by_vector.reason == "DEPENDENCY_UNAVAILABLE"
        assert dict(by_vector.metadata) == {"dependency": "vector engine"}


class TestBreaker:
    async def test_opens_counts_and_closes(
        self, tenant: Tenant, engine: Interruptible, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await remember(tenant, *FACTS)
        assert await found(tenant, "salmon", mode="lexical") == ([FACTS[2]], [])
        monkeypatch.setattr(engine_first, "PAUSE_SECONDS", 2.0)
        counted = {reason: -fallbacks(reason) for reason in ("unavailable", "breaker")}
        asked = -engine.calls.count("query")

        async with engine.down():
            answers = [await found(tenant, "salmon", mode="lexical") for _ in range(5)]
            opened = gauge()
        answers.append(await found(tenant, "salmon", mode="lexical"))
        asked += engine.calls.count("query")
        counted = {reason: fallbacks(reason) + before for reason, before in counted.items()}
        await eventually(
            lambda: found(tenant, "salmon", mode="lexical"), lambda now: now == ([FACTS[2]], [])
        )

        assert {tuple(why) for _, why in answers} == {(VECTOR_ENGINE,)}
        assert (asked, counted) == (3, {"unavailable": 3, "breaker": 3})
        assert (opened, gauge()) == (1, 0)


def gauge() -> float:
    return BREAKER_OPEN._value.get()


def fallbacks(reason: str) -> float:
    return FALLBACKS.labels(reason)._value.get()


async def test_contexts_are_filled_from_words_and_say_so(
    running: tuple[RunningStorage, Interruptible], tenant: Tenant, engine: Interruptible
) -> None:
    storage = running[0]
    notes = [user(f"Note {n}: the weather was grey and nothing happened.") for n in range(80)]
    stored = await append(tenant.raw, "", user("The spare anchor is in shed seven."), *notes)
    await indexed(tenant)

    async with (
        running_context(storage.address) as context,
        AsyncAnnalsClient(
            storage.address, context.address, api_key=tenant.api_key, admin_key=ADMIN_KEY
        ) as annals,
        engine.down(),
    ):
        prepared = await annals.context.prepare(
            stored.conversation_id, budget_tokens=400, query="Where is the anchor?", timeout=30
        )

    assert "shed seven" in prepared.payload
    assert list(prepared.degraded) == [VECTOR_ENGINE]
