"""Searches follow branches: what is in view on the current one, unless asked otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, empty_conversation, ids
from tests.support.indexing import EmbeddingWork, indexed
from tests.support.raw import Failure, failure
from tests.support.storage import RunningStorage, Tenant

from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import search_service_pb2 as pb
from annals_client import user
from annals_storage.domain.search import SearchScope
from annals_storage.vectors import payload

MODES = [pb.SEARCH_MODE_DENSE, pb.SEARCH_MODE_LEXICAL, pb.SEARCH_MODE_HYBRID]


async def say(tenant: Tenant, room: str, *words: str, **fields: Any) -> list[str]:
    events = [user(f"The owl says {word}.") for word in words]
    return ids(await append(tenant.raw, room, *events, **fields))


async def revert(tenant: Tenant, room: str, event_id: str = "") -> int:
    request = event_pb.RevertToEventRequest(conversation_id=room, event_id=event_id)
    return int((await tenant.raw.call("RevertToEvent", request)).branch.branch)


async def select(tenant: Tenant, room: str, branch: int) -> None:
    request = event_pb.SelectBranchRequest(conversation_id=room, branch=branch)
    await tenant.raw.call("SelectBranch", request)


async def search(
    tenant: Tenant, *rooms: str, mode: pb.SearchMode = pb.SEARCH_MODE_LEXICAL, **filters: Any
) -> list[int]:
    """The seqs of what is found, in order."""
    request = pb.SearchEventsRequest(
        query="owl",
        mode=mode,
        limit=100,
        filter=pb.SearchFilter(conversation_ids=rooms, **filters),
    )
    found = await tenant.raw.call("SearchEvents", request)
    return sorted(hit.seq for hit in found.hits)


@pytest.fixture
async def room(tenant: Tenant) -> str:
    """Trunk 1 2 3, then reverted to 1: branch 2 with 4 5, reverted to 4: branch 3 with 6."""
    room = await empty_conversation(tenant)
    first, *_ = await say(tenant, room, "one", "two", "three")
    assert await revert(tenant, room, first) == 2
    fourth, _ = await say(tenant, room, "four", "five")
    assert await revert(tenant, room, fourth) == 3
    await say(tenant, room, "six")
    await indexed(tenant)
    return room


VIEWS = {1: [1, 2, 3], 2: [1, 4, 5], 3: [1, 4, 6]}


@pytest.mark.parametrize("mode", MODES)
async def test_the_current_branch_is_searched(
    tenant: Tenant, room: str, mode: pb.SearchMode
) -> None:
    assert await search(tenant, room, mode=mode) == VIEWS[3]
    assert await search(tenant, mode=mode) == VIEWS[3]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("branch", VIEWS)
async def test_any_branch_on_request(
    tenant: Tenant, room: str, mode: pb.SearchMode, branch: int
) -> None:
    assert await search(tenant, room, mode=mode, branch=branch) == VIEWS[branch]


@pytest.mark.parametrize("mode", MODES)
async def test_all_branches_on_request(tenant: Tenant, room: str, mode: pb.SearchMode) -> None:
    assert await search(tenant, room, mode=mode, all_branches=True) == [1, 2, 3, 4, 5, 6]
    assert await search(tenant, mode=mode, all_branches=True) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("branch", VIEWS)
async def test_selecting_a_branch_moves_the_search_without_the_model(
    tenant: Tenant, room: str, branch: int
) -> None:
    with EmbeddingWork() as work:
        await select(tenant, room, branch)
        await indexed(tenant)

    assert await search(tenant, room) == VIEWS[branch]
    assert work.embedded == 0


async def test_what_leaves_the_view_is_not_found_before_the_mirror_follows(
    tenant: Tenant, room: str
) -> None:
    await select(tenant, room, 1)

    assert set(await search(tenant, room)) <= set(VIEWS[1])


async def test_a_stale_mirror_does_not_bring_back_what_is_out_of_view(
    tenant: Tenant, room: str, storage: RunningStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everything(scope: SearchScope) -> Any:
        return excluded(replace(scope, all_branches=True))

    excluded = payload.excluded
    monkeypatch.setattr(payload, "excluded", everything)
    scope = SearchScope(UUID(tenant.tenant_id))

    assert await storage.adapters.vectors.count(scope) == 6, "the engine would return them all"
    assert await search(tenant, room) == VIEWS[3]
    assert await search(tenant, room, branch=2) == VIEWS[2]


async def test_an_append_to_another_branch_is_not_in_view(tenant: Tenant, room: str) -> None:
    await say(tenant, room, "seven", branch=2)
    await indexed(tenant)

    assert await search(tenant, room) == VIEWS[3]
    assert await search(tenant, room, branch=2) == [*VIEWS[2], 7]


async def test_a_trunk_without_branches_is_found_by_its_number(tenant: Tenant) -> None:
    room = await empty_conversation(tenant)
    await say(tenant, room, "one", "two")
    await indexed(tenant)

    assert await search(tenant, room, branch=1) == [1, 2]


async def test_deleted_events_of_any_branch_are_not_found(tenant: Tenant, room: str) -> None:
    listing = event_pb.ListEventsRequest(conversation_id=room, all_branches=True)
    events = (await tenant.raw.call("ListEvents", listing)).events
    second = next(event for event in events if event.seq == 2)

    await tenant.raw.call("DeleteEvent", event_pb.DeleteEventRequest(event_id=second.event_id))

    assert await search(tenant, room, all_branches=True) == [1, 3, 4, 5, 6]
    assert await search(tenant, room, branch=1) == [1, 3]


async def test_an_unknown_branch_and_a_foreign_conversation_are_not_found(
    tenant: Tenant, other_tenant: Tenant, room: str
) -> None:
    unknown = await failure(search(tenant, room, branch=9))
    foreign = await failure(search(other_tenant, room, branch=1))
    nobodys = await failure(search(other_tenant, missing := str(uuid4()), branch=1))

    assert {f.reason for f in (unknown, foreign, nobodys)} == {"RESOURCE_NOT_FOUND"}
    assert foreign.without(room) == nobodys.without(missing)


@pytest.mark.parametrize(
    ("rooms", "filters", "field"),
    [
        (0, {"branch": 1}, "filter.branch"),
        (2, {"branch": 1}, "filter.branch"),
        (1, {"branch": -1}, "filter.branch"),
        (1, {"branch": 1, "all_branches": True}, "filter.all_branches"),
    ],
    ids=str,
)
async def test_senseless_branches_are_refused(
    tenant: Tenant, rooms: int, filters: dict[str, Any], field: str
) -> None:
    refused: Failure = await failure(search(tenant, *[str(uuid4())] * rooms, **filters))

    assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))
