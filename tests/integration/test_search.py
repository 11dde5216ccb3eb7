"""Search through the whole service: append, index, find."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.appending import append, empty_conversation, ids
from tests.support.scratch import run
from tests.support.storage import (
    RunningStorage,
    Tenant,
    fresh_tenant,
)
from tests.support.waiting import eventually

from annals.storage.v1 import search_service_pb2 as pb
from annals_client import assistant, error, system, tool_call, tool_result, user
from annals_local.postgres import LocalPostgres
from annals_storage.app_adapters import cancelled

FACTS = [
    "My sister Ingrid keeps bees on the roof of her house in Bergen.",
    "The invoice 2024-0417 was paid twice by mistake.",
    "For the marathon I train four times a week.",
    "Our cat refuses to eat anything but salmon.",
    "The server room floods whenever it rains hard.",
]
NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
MODES = ["dense", "lexical", "hybrid"]


async def indexed(tenant: Tenant) -> None:
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)


async def remember(tenant: Tenant, *texts: str) -> str:
    """A conversation of these messages, indexed."""
    stored = await append(tenant.raw, "", *[user(text) for text in texts])
    await indexed(tenant)
    return stored.conversation_id


async def contents(tenant: Tenant, query: str, **fields: Any) -> list[str]:
    found = await tenant.client.search.events(query, **fields)
    return [hit.event.message.content for hit in found.hits]


class TestFinds:
    @pytest.mark.parametrize(
        ("mode", "query", "expected"),
        [
            ("dense", "Who looks after insects that make honey?", 0),
            ("dense", "running exercise schedule", 2),
            ("lexical", "invoice 2024-0417", 1),
            ("lexical", "salmon", 3),
            ("hybrid", "what does the pet like to eat", 3),
            ("hybrid", "water damage when raining", 4),
        ],
    )
    async def test_the_right_one_first(
        self, tenant: Tenant, mode: str, query: str, expected: int
    ) -> None:
        await remember(tenant, *FACTS)

        found = await contents(tenant, query, mode=mode)

        assert found[0] == FACTS[expected]

    async def test_every_event_of_the_scope_when_nothing_limits(self, tenant: Tenant) -> None:
        await remember(tenant, *FACTS)

        found = await tenant.client.search.events(FACTS[0], mode="dense", limit=100)

        assert len(found.hits) == len(FACTS), "a negative cosine is a score too"
        scores = [hit.score for hit in found.hits]
        assert scores == sorted(scores, reverse=True)

    async def test_tool_calls_results_and_errors_by_their_content(self, tenant: Tenant) -> None:
        await append(
            tenant.raw,
            "",
            user("What is the weather?"),
            tool_call("c", "get_weather", {"city": "Reykjavík"}),
            tool_result("c", '{"sky": "thunderstorm with hail"}'),
            system("conversation truncated at zebra crossing"),
            error("rate_limit", "quota of flamingos exceeded"),
        )
        await indexed(tenant)
        search = tenant.client.search.events

        for query, seq in [("Reykjavík", 2), ("hail", 3), ("zebra", 4), ("flamingos", 5)]:
            found = await search(query, mode="lexical")
            assert [hit.seq for hit in found.hits] == [seq], query

    async def test_the_sentence_in_a_long_document(self, tenant: Tenant) -> None:
        needle = "The spare key hangs behind the portrait of grandmother Adelheid."
        filler = [f"Paragraph {n} speaks of budgets, meetings and minutes." for n in range(120)]
        text = " ".join([*filler[:70], needle, *filler[70:]])
        await remember(tenant, text)

        found = await tenant.client.search.events("Where is the spare key portrait?")

        hit = found.hits[0]
        span = hit.event.message.content[hit.chunk_start : hit.chunk_end]
        assert needle in span
        assert len(span) < len(text) / 2

    async def test_spans_point_into_the_words_of_a_tool_result(self, tenant: Tenant) -> None:
        stored = await append(
            tenant.raw, "", tool_call("c", "long_tool_name"), tool_result("c", "hail and thunder")
        )
        await indexed(tenant)

        found = await tenant.client.search.events("hail", mode="lexical")

        hit = found.hits[0]
        assert hit.event_id == ids(stored)[1]
        assert hit.event.tool_result.result[hit.chunk_start : hit.chunk_end] == "hail and thunder"

    async def test_events_without_words_are_skipped_and_not_counted(self, tenant: Tenant) -> None:
        await append(tenant.raw, "", user(""), user(" \n"), assistant("words"))
        await indexed(tenant)

        status = await tenant.client.index.status()

        assert (status.chunk_count, status.point_count) == (1, 1)


class TestFilters:
    @pytest.fixture
    async def rooms(self, tenant: Tenant) -> dict[str, str]:
        """Conversations a (agent, user ann), b (session s) and c, each saying the word owl."""
        client = tenant.client
        agent = await client.agents.create("a")
        a = await client.conversations.create(agent_id=agent.agent_id, user_id="ann")
        b = await client.conversations.create(session_id="s")
        c = await client.conversations.create()
        made = {"a": a.conversation_id, "b": b.conversation_id, "c": c.conversation_id}
        await append(tenant.raw, made["a"], user("owl a", event_time=NOON))
        await append(
            tenant.raw, made["b"], assistant("owl b", event_time=NOON + timedelta(minutes=1))
        )
        await append(
            tenant.raw,
            made["c"],
            tool_call("c", "hunt", {"x": "owl"}, event_time=NOON + timedelta(minutes=2)),
            tool_result("c", "owl c", event_time=NOON + timedelta(minutes=3)),
            user("mouse", event_time=NOON + timedelta(minutes=4)),
        )
        await indexed(tenant)
        return made | {"agent": agent.agent_id}

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ({"conversation_ids": ["a"]}, ["a1"]),
            ({"conversation_ids": ["a", "b"]}, ["a1", "b1"]),
            ({"agent_ids": ["agent"]}, ["a1"]),
            ({"user_id": "ann"}, ["a1"]),
            ({"user_id": "bob"}, []),
            ({"session_id": "s"}, ["b1"]),
            ({"types": ["message"]}, ["a1", "b1", "c3"]),
            ({"types": ["tool-call"]}, ["c1"]),
            ({"types": ["tool-result", "tool-call"]}, ["c1", "c2"]),
            ({"roles": ["assistant"]}, ["b1"]),
            ({"tool_names": ["hunt"]}, ["c1", "c2"]),
            ({"tool_names": ["other"]}, []),
            ({"start_time": NOON + timedelta(minutes=3)}, ["c2", "c3"]),
            ({"end_time": NOON + timedelta(minutes=1)}, ["a1"]),
            ({"user_id": "ann", "roles": ["assistant"]}, []),
        ],
        ids=str,
    )
    async def test_hold_together_in_every_mode(
        self,
        tenant: Tenant,
        rooms: dict[str, str],
        mode: str,
        query: dict[str, Any],
        expected: list[str],
    ) -> None:
        for name in ("conversation_ids", "agent_ids"):
            if name in query:
                query = {**query, name: [rooms[key] for key in query[name]]}
        names = {room: key for key, room in rooms.items()}

        found = await tenant.client.search.events("owl", mode=mode, limit=50, **query)

        hits = sorted(f"{names[hit.conversation_id]}{hit.seq}" for hit in found.hits)
        if mode == "dense":
            assert set(hits) <= set(expected)
        else:
            assert set(hits) >= set(expected) - {"c3"}
            assert set(hits) <= set(expected)

    async def test_leave_out_what_is_excluded(self, tenant: Tenant, rooms: dict[str, str]) -> None:
        first = await tenant.client.events.get(conversation_id=rooms["a"], seq=1)

        found = await tenant.client.search.events("owl", exclude_event_ids=[first.event_id])

        assert found.hits
        assert first.event_id not in {hit.event_id for hit in found.hits}


class TestScores:
    async def test_below_the_threshold_are_left_out(self, tenant: Tenant) -> None:
        await remember(tenant, *FACTS)
        everything = await tenant.client.search.events("bees on the roof", limit=100)
        middle = everything.hits[1].score

        found = await tenant.client.search.events("bees on the roof", min_score=middle)

        assert [hit.score for hit in found.hits] == [
            hit.score for hit in everything.hits if hit.score >= middle
        ]

    @pytest.mark.parametrize("mode", MODES)
    async def test_are_explained_by_components_that_add_up(self, tenant: Tenant, mode: str) -> None:
        await remember(tenant, *FACTS)

        found = await tenant.client.search.events("salmon for the cat", mode=mode, explain=True)

        assert found.hits
        for hit in found.hits:
            parts = list(hit.components)
            lent = {"neighbors", "maxsim"} if mode == "hybrid" else set()
            assert {part.signal for part in parts} <= {"dense", "bm25", *lent}
            if mode == "dense":
                assert hit.score == pytest.approx(parts[0].raw_score)
            else:
                total = sum(part.weight * part.normalized_score for part in parts)
                assert hit.score == pytest.approx(total)
            for part in parts:
                assert 0 <= part.normalized_score <= 1
                assert (part.rank >= 1) != (part.signal == "neighbors")
        assert not any(h.components for h in (await tenant.client.search.events("cat")).hits)

    async def test_chunks_without_token_signs_count_as_before(
        self, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        """As those that an earlier version mirrored."""
        await remember(tenant, *FACTS)
        before = await contents(tenant, "salmon for the cat")
        forget = "UPDATE annals.chunks SET token_signs = NULL WHERE tenant_id = %s"
        run(postgres.admin_url, forget, [tenant.tenant_id])

        found = await tenant.client.search.events("salmon for the cat", explain=True)

        assert found.hits[0].event.message.content == before[0]
        signals = {part.signal for hit in found.hits for part in hit.components}
        assert signals == {"dense", "bm25", "neighbors"}

    async def test_whom_the_query_names_gains(self, tenant: Tenant) -> None:
        words = "The garden needs water."
        await append(tenant.raw, "", *[user(words, author_name=n) for n in ("Ann", "Bea")])
        await indexed(tenant)

        asked = {}
        for name in ("Ann", "Bea"):
            found = await tenant.client.search.events(f"What did {name} say?", explain=True)
            asked[name] = found.hits[0].event.message.author_name
            named = [part.signal for part in found.hits[0].components]
            assert "speaker" in named

        assert asked == {"Ann": "Ann", "Bea": "Bea"}

    async def test_the_time_asked_about_gains_and_filters_nothing(self, tenant: Tenant) -> None:
        """Seen from the newest event of the conversation, from what is given, or from now."""
        days = [timedelta(days=-30), timedelta(days=-1), timedelta()]
        told = [user("The garden needs water.", event_time=NOON + day) for day in days]
        room = (await append(tenant.raw, "", *told)).conversation_id
        await indexed(tenant)

        async def timely(query: str, **fields: Any) -> list[int]:
            found = await tenant.client.search.events(query, explain=True, **fields)
            assert len(found.hits) == len(days)
            parts = {hit.seq: {part.signal for part in hit.components} for hit in found.hits}
            gained = sorted(seq for seq, signals in parts.items() if "time" in signals)
            assert found.hits[0].seq in gained or not gained
            return gained

        yesterday = "What needed water yesterday?"
        assert await timely(yesterday, conversation_ids=[room]) == [2, 3]
        assert await timely(yesterday, reference_time=NOON - timedelta(days=29)) == [1]
        assert await timely(yesterday) == []
        assert await timely("What needed water on 6 April 2024?") == [1]
        assert await timely("What needs water?", conversation_ids=[room]) == []

    async def test_ids_only_carry_no_event(self, tenant: Tenant) -> None:
        await remember(tenant, *FACTS)

        found = await tenant.client.search.events("cat", ids_only=True)

        assert found.hits
        assert not any(hit.HasField("event") for hit in found.hits)
        assert all(hit.event_id and hit.conversation_id and hit.seq for hit in found.hits)

    async def test_the_limit_is_kept(self, tenant: Tenant) -> None:
        await remember(tenant, *FACTS)

        assert len(await contents(tenant, "the", mode="dense", limit=2)) == 2


class TestFreshness:
    async def test_read_your_writes_finds_what_was_just_appended(self, tenant: Tenant) -> None:
        for number in range(10):
            word = f"xylophone{number}"
            stored = await append(tenant.raw, "", user(f"I bought a {word}"))

            found = await tenant.client.search.events(
                word,
                mode="lexical",
                conversation_ids=[stored.conversation_id],
                freshness="read-your-writes",
            )

            assert [hit.event_id for hit in found.hits] == ids(stored)
            assert (list(found.degraded), found.unindexed_count) == ([], 0)

    async def test_read_your_writes_holds_after_a_restore(self, tenant: Tenant) -> None:
        room = await remember(tenant, *FACTS)
        await tenant.client.conversations.delete(room)
        await indexed(tenant)
        await tenant.client.conversations.restore(room)

        found = await tenant.client.search.events(
            "salmon", mode="lexical", conversation_ids=[room], freshness="read-your-writes"
        )

        assert [hit.event.message.content for hit in found.hits] == [FACTS[3]]

    async def test_without_an_indexer_says_what_is_missing(self, unindexed: Tenant) -> None:
        stored = await append(unindexed.raw, "", user("one"), user("two"), user(""))
        room = stored.conversation_id

        found = await unindexed.client.search.events("one")

        assert list(found.hits) == []
        assert found.unindexed_count == 3
        assert list(found.degraded) == []
        later = await eventually(
            lambda: unindexed.client.search.events("one", conversation_ids=[room]),
            lambda answer: answer.index_lag_ms > 0,
        )
        assert later.unindexed_count == 3
        elsewhere = await empty_conversation(unindexed)
        other = await unindexed.client.search.events("one", conversation_ids=[elsewhere])
        assert (other.unindexed_count, other.index_lag_ms) == (0, 0)

    async def test_read_your_writes_gives_up_in_time_and_says_so(self, unindexed: Tenant) -> None:
        stored = await append(unindexed.raw, "", user("one"))
        request = pb.SearchEventsRequest(
            query="one",
            filter=pb.SearchFilter(conversation_ids=[stored.conversation_id]),
            freshness=pb.SEARCH_FRESHNESS_READ_YOUR_WRITES,
        )

        found = await unindexed.raw.call("SearchEvents", request, timeout_s=1.0)

        assert list(found.degraded) == ["freshness_timeout"]
        assert found.unindexed_count == 1


class TestDeletedConversations:
    async def test_vanish_at_once_and_return(self, tenant: Tenant) -> None:
        room = await remember(tenant, *FACTS)
        other = await remember(tenant, "An unrelated talk about salmon.")

        await tenant.client.conversations.delete(room)

        assert await contents(tenant, "salmon") == ["An unrelated talk about salmon."]
        await indexed(tenant)
        await tenant.client.conversations.restore(room)
        found = await eventually(
            lambda: contents(tenant, "salmon", conversation_ids=[room]), lambda texts: texts
        )
        assert found[0] == FACTS[3]
        assert other

    async def test_leave_the_mirror_and_the_counts_equal(self, tenant: Tenant) -> None:
        room = await remember(tenant, *FACTS)
        await remember(tenant, "another")
        await tenant.client.conversations.delete(room)
        await indexed(tenant)

        status = await tenant.client.index.status()

        assert status.chunk_count == status.point_count == 1

    async def test_restored_are_mirrored_again_in_full(self, tenant: Tenant) -> None:
        room = await remember(tenant, *FACTS)
        await tenant.client.conversations.delete(room)
        await indexed(tenant)
        await tenant.client.conversations.restore(room)

        status = await eventually(
            tenant.client.index.status, lambda s: s.pending_count == 0 and s.point_count > 0
        )

        assert status.chunk_count == status.point_count == len(FACTS)


async def test_a_moved_conversation_is_found_by_its_new_user(tenant: Tenant) -> None:
    room = await remember(tenant, *FACTS)

    await tenant.client.conversations.update(room, user_id="ann")

    await eventually(
        lambda: contents(tenant, "salmon", user_id="ann"), lambda texts: texts[:1] == [FACTS[3]]
    )


@pytest.fixture
async def unindexed(idle: RunningStorage) -> AsyncIterator[Tenant]:
    """A tenant of a service whose indexer has been stopped."""
    async with fresh_tenant(idle) as tenant:
        yield tenant


@pytest.fixture(scope="module")
async def idle(own_storage: RunningStorage) -> RunningStorage:
    assert own_storage.app.indexing is not None
    await cancelled(own_storage.app.indexing)
    return own_storage
