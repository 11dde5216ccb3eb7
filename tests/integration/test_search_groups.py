"""What a hit stands for, and hits that say something new."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from tests.support.appending import append, ids
from tests.support.scratch import run
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.waiting import eventually

from annals.storage.v1 import search_service_pb2 as pb
from annals_client import user
from annals_local.postgres import LocalPostgres

PARAGRAPH = "Chapter {} tells how the lighthouse keeper mends the lamp. " + "It rained. " * 60
LONG = " ".join(PARAGRAPH.format(n) for n in range(8))
ALIKE = [
    "The lighthouse keeper fed the gulls on Monday.",
    "The lighthouse keeper fed the gulls on Tuesday.",
    "The lighthouse keeper fed the gulls on Wednesday.",
]
OTHER = "A lighthouse keeper needs a licence for the radio."


class Told(NamedTuple):
    tenant: Tenant
    rooms: list[str]


@pytest.fixture(scope="module")
async def told(storage: RunningStorage) -> AsyncIterator[Told]:
    """Three conversations: a long text; near-duplicates and another; the duplicates' like."""
    async with fresh_tenant(storage) as tenant:
        said = [[user(LONG)], [user(text) for text in [*ALIKE, OTHER]], [user(OTHER)]]
        rooms = [(await append(tenant.raw, "", *events)).conversation_id for events in said]
        await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)
        yield Told(tenant, rooms)


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
class TestGroups:
    async def test_events_are_hits_once(self, told: Told, mode: str) -> None:
        found = await told.tenant.client.search.events("lighthouse keeper", mode=mode)

        assert len({hit.event_id for hit in found.hits}) == len(found.hits) == 6
        sizes = {hit.conversation_id: hit.group_size for hit in found.hits}
        assert sizes[told.rooms[0]] > 1, "chunks of the long text"
        assert sizes[told.rooms[2]] == 1

    async def test_chunks_of_a_long_event_are_hits_of_their_own(
        self, told: Told, mode: str
    ) -> None:
        found = await told.tenant.client.search.events(
            "lighthouse keeper lamp", mode=mode, group_by="chunk", limit=100, explain=True
        )

        spans = {(hit.event_id, hit.chunk_index): hit for hit in found.hits}
        assert len(spans) == len(found.hits)
        of_long = [hit for hit in found.hits if hit.conversation_id == told.rooms[0]]
        assert len(of_long) > 2
        assert all("lamp" in LONG[hit.chunk_start : hit.chunk_end] for hit in of_long)
        assert len({hit.chunk_start for hit in of_long}) == len(of_long)
        scores = [hit.score for hit in found.hits]
        assert scores == sorted(scores, reverse=True)
        for hit in found.hits:
            assert hit.group_size == 1
            total = sum(part.weight * part.normalized_score for part in hit.components)
            if mode != "dense":
                assert hit.score == pytest.approx(total)

    async def test_conversations_are_hits_by_their_best_event(self, told: Told, mode: str) -> None:
        search = told.tenant.client.search.events

        found = await search("lighthouse keeper feeds gulls", mode=mode, group_by="conversation")

        assert {hit.conversation_id for hit in found.hits} == set(told.rooms)
        assert len(found.hits) == 3
        by_event = await search("lighthouse keeper feeds gulls", mode=mode, limit=100)
        best = {hit.conversation_id: hit for hit in reversed(by_event.hits)}
        for hit in found.hits:
            assert (hit.event_id, hit.score) == (
                best[hit.conversation_id].event_id,
                best[hit.conversation_id].score,
            )
        assert {hit.group_size for hit in found.hits} == {1, 4}

    async def test_a_limit_counts_groups(self, told: Told, mode: str) -> None:
        found = await told.tenant.client.search.events(
            "gulls and the lighthouse keeper", mode=mode, group_by="conversation", limit=2
        )

        assert len({hit.conversation_id for hit in found.hits}) == len(found.hits) == 2


async def test_groups_fill_up_behind_one_with_more_chunks_than_are_asked_for(
    tenant: Tenant,
) -> None:
    """The engine is asked for 200 chunks first."""
    crowd = await append(tenant.raw, "", *[user(f"lighthouse {n}") for n in range(230)])
    quiet = await append(tenant.raw, "", user("The " + "lighthouse was old " + "and grey " * 40))
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)

    found = await tenant.client.search.events(
        "lighthouse", mode="lexical", group_by="conversation", limit=2
    )

    assert [hit.conversation_id for hit in found.hits] == [
        crowd.conversation_id,
        quiet.conversation_id,
    ]
    assert [hit.group_size for hit in found.hits] == [230, 1]


async def test_the_next_of_a_conversation_stands_for_it_when_the_best_is_gone(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    stored = await append(tenant.raw, "", user("lighthouse"), user("a lighthouse in the fog"))
    await append(tenant.raw, "", user("no tower, but a lighthouse it was that stood in the fog"))
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)
    # Behind the mirror's back.
    gone = "UPDATE annals.events SET deleted_at = now() WHERE event_id = %s"
    run(postgres.admin_url, gone, [ids(stored)[0]])

    found = await tenant.client.search.events("lighthouse", mode="lexical", group_by="conversation")

    assert [hit.seq for hit in found.hits] == [2, 1]
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


class TestDiversity:
    async def test_moves_near_duplicates_down(self, told: Told) -> None:
        search = told.tenant.client.search.events
        fields = {"conversation_ids": told.rooms[1:2], "mode": "dense"}
        query = "The lighthouse keeper fed the gulls"
        plain = [hit.event.message.content for hit in (await search(query, **fields)).hits]
        assert plain[3] == OTHER

        found = await search(query, diversity=0.5, explain=True, **fields)

        diverse = [hit.event.message.content for hit in found.hits]
        assert diverse[0] == plain[0]
        assert diverse[1] == OTHER
        assert sorted(diverse) == sorted(plain)
        placed = [hit.components[-1] for hit in found.hits]
        assert {part.signal for part in placed} == {"diversity"}
        assert [part.rank for part in placed][:2] == [1, 4]
        assert placed[0].raw_score == 0
        assert max(part.raw_score for part in placed[2:]) > 0.9
        assert all(part.weight == 0 for part in placed)

    async def test_does_not_change_scores(self, told: Told) -> None:
        search = told.tenant.client.search.events
        plain = await search("lighthouse keeper", limit=100)
        diverse = await search("lighthouse keeper", limit=100, diversity=0.9)

        assert {hit.event_id: hit.score for hit in plain.hits} == {
            hit.event_id: hit.score for hit in diverse.hits
        }

    async def test_goes_with_groups(self, told: Told) -> None:
        request = pb.SearchEventsRequest(
            query="lighthouse keeper", group_by=pb.SEARCH_GROUPING_CONVERSATION, diversity=1.0
        )

        found = await told.tenant.raw.call("SearchEvents", request)

        assert {hit.conversation_id for hit in found.hits} == set(told.rooms)
        assert len(found.hits) == 3
