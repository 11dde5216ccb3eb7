"""Branches: opening, reading, selecting, listing."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
from tests.support.appending import append, empty_conversation, ids, state
from tests.support.branch_rows import NestedBranches
from tests.support.branching import (
    NaiveConversation,
    branches_of,
    create_branch,
    revert,
    select_branch,
)
from tests.support.raw import failure
from tests.support.scratch import ScratchDatabase
from tests.support.storage import RunningStorage, Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import user
from annals_storage.domain.branches import MAX_BRANCHES
from annals_storage.postgres.branches import PostgresBranches
from annals_storage.postgres.database import Database


async def five(tenant: Tenant) -> tuple[str, list[str]]:
    """A conversation of five events."""
    stored = await append(tenant.raw, "", *[user(f"e{n}") for n in range(1, 6)])
    return stored.conversation_id, ids(stored)


async def seqs_in(tenant: Tenant, room: str, **fields: Any) -> list[int]:
    request = pb.ListEventsRequest(conversation_id=room, **fields)
    return [event.seq for event in (await tenant.raw.call("ListEvents", request)).events]


async def pages(tenant: Tenant, request: pb.ListEventsRequest) -> list[int]:
    found: list[int] = []
    while True:
        page = await tenant.raw.call("ListEvents", request)
        found += [event.seq for event in page.events]
        request.page_token = page.next_page_token
        if not request.page_token:
            return found


class TestRevert:
    async def test_leaves_later_events_behind_on_their_branch(self, tenant: Tenant) -> None:
        room, events = await five(tenant)

        branch = await revert(tenant.raw, room, events[2], display_name="again")
        await append(tenant.raw, room, user("e6"))

        assert (branch.branch, branch.parent_branch, branch.fork_seq) == (2, 1, 3)
        assert (branch.current, branch.display_name, branch.event_count) == (True, "again", 0)
        assert await seqs_in(tenant, room) == [1, 2, 3, 6]
        assert await seqs_in(tenant, room, branch=1) == [1, 2, 3, 4, 5]
        assert await seqs_in(tenant, room, all_branches=True) == [1, 2, 3, 4, 5, 6]

    async def test_without_an_event_keeps_none(self, tenant: Tenant) -> None:
        room, _ = await five(tenant)

        branch = await revert(tenant.raw, room)

        assert branch.fork_seq == 0
        assert await seqs_in(tenant, room) == []

    async def test_seqs_stay_gapless_over_all_branches(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        await revert(tenant.raw, room, events[0])

        stored = await append(tenant.raw, room, user("a"), user("b"))

        assert [event.seq for event in stored.events] == [6, 7]
        now = await state(tenant.raw, room)
        assert (now.event_count, now.current_branch, now.branch_count) == (7, 2, 2)

    async def test_to_an_event_of_another_branch_is_not_found(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        await revert(tenant.raw, room, events[1])

        refused = await failure(revert(tenant.raw, room, events[4]))

        assert refused.code is grpc.StatusCode.NOT_FOUND
        assert refused.metadata == (("id", events[4]), ("resource", "event"))
        assert len(await branches_of(tenant.raw, room)) == 2

    async def test_to_an_event_of_another_conversation_is_not_found(self, tenant: Tenant) -> None:
        (room, _), (_, others) = await five(tenant), await five(tenant)

        refused = await failure(revert(tenant.raw, room, others[0]))

        assert refused.reason == "RESOURCE_NOT_FOUND"

    async def test_bumps_the_version_once(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        before = await state(tenant.raw, room)

        await revert(tenant.raw, room, events[2])

        assert (await state(tenant.raw, room)).version > before.version


class TestRetries:
    async def test_the_same_request_id_opens_one_branch(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        fields = {"request_id": str(uuid4()), "display_name": "x"}
        first = await revert(tenant.raw, room, events[2], **fields)

        again = await revert(tenant.raw, room, events[2], **fields)

        assert again == first
        assert (await state(tenant.raw, room)).branch_count == 2

    @pytest.mark.parametrize("change", ["event", "name", "method"])
    async def test_the_same_request_id_with_other_content_is_refused(
        self, tenant: Tenant, change: str
    ) -> None:
        room, events = await five(tenant)
        key = str(uuid4())
        await create_branch(tenant.raw, room, events[2], request_id=key, select=True)
        calls = {
            "event": lambda: create_branch(
                tenant.raw, room, events[1], request_id=key, select=True
            ),
            "name": lambda: create_branch(
                tenant.raw, room, events[2], request_id=key, select=True, display_name="y"
            ),
            "method": lambda: revert(tenant.raw, room, events[2], request_id=key),
        }

        refused = await failure(calls[change]())

        assert refused.reason == "IDEMPOTENCY_KEY_REUSED"
        assert (await state(tenant.raw, room)).branch_count == 2


class TestCreate:
    async def test_does_not_select_unless_asked(self, tenant: Tenant) -> None:
        room, events = await five(tenant)

        branch = await create_branch(tenant.raw, room, events[3])
        await append(tenant.raw, room, user("on trunk"))
        await append(tenant.raw, room, user("aside"), branch=2)

        assert not branch.current
        assert await seqs_in(tenant, room) == [1, 2, 3, 4, 5, 6]
        assert await seqs_in(tenant, room, branch=2) == [1, 2, 3, 4, 7]

    async def test_departs_from_the_branch_named(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        await revert(tenant.raw, room, events[0])

        branch = await create_branch(tenant.raw, room, events[4], parent_branch=1, select=True)

        assert (branch.parent_branch, branch.fork_seq, branch.current) == (1, 5, True)
        assert await seqs_in(tenant, room) == [1, 2, 3, 4, 5]

    async def test_an_event_out_of_the_parents_view_is_not_found(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        await create_branch(tenant.raw, room, events[0])

        refused = await failure(create_branch(tenant.raw, room, events[1], parent_branch=2))

        assert refused.reason == "RESOURCE_NOT_FOUND"

    async def test_an_unknown_parent_is_not_found(self, tenant: Tenant) -> None:
        room, events = await five(tenant)

        refused = await failure(create_branch(tenant.raw, room, events[0], parent_branch=7))

        assert refused.metadata == (("id", "7"), ("resource", "branch"))

    async def test_has_a_limit(self, tenant: Tenant, storage: RunningStorage) -> None:
        room, _ = await five(tenant)
        statement = "UPDATE annals.conversations SET branch_count = %(count)s"
        await storage.adapters.database.run(
            UUID(tenant.tenant_id), (statement, {"count": MAX_BRANCHES})
        )

        refused = await failure(create_branch(tenant.raw, room))

        assert refused.reason == "LIMIT_EXCEEDED"
        assert dict(refused.metadata)["limit"] == str(MAX_BRANCHES)


class TestSelect:
    async def test_makes_reads_and_writes_follow(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        await revert(tenant.raw, room, events[1])
        await append(tenant.raw, room, user("e6"))

        trunk = await select_branch(tenant.raw, room, 1)
        await append(tenant.raw, room, user("e7"))

        assert (trunk.branch, trunk.current, trunk.last_seq, trunk.event_count) == (1, True, 5, 5)
        assert await seqs_in(tenant, room) == [1, 2, 3, 4, 5, 7]
        assert await seqs_in(tenant, room, branch=2) == [1, 2, 6]

    async def test_of_the_current_one_changes_nothing(self, tenant: Tenant) -> None:
        room, _ = await five(tenant)
        before = await state(tenant.raw, room)

        await select_branch(tenant.raw, room, 1)

        assert await state(tenant.raw, room) == before

    @pytest.mark.parametrize(
        ("branch", "reason"),
        [(0, "FIELD_INVALID"), (-1, "FIELD_INVALID"), (9, "RESOURCE_NOT_FOUND")],
    )
    async def test_of_a_branch_that_is_none_is_refused(
        self, tenant: Tenant, branch: int, reason: str
    ) -> None:
        room, _ = await five(tenant)

        refused = await failure(select_branch(tenant.raw, room, branch))

        assert refused.reason == reason


class TestList:
    @pytest.mark.parametrize("page_size", [1, 2, 3, 0])
    async def test_shows_all_with_their_own_events(self, tenant: Tenant, page_size: int) -> None:
        room, events = await five(tenant)
        await revert(tenant.raw, room, events[1])
        await append(tenant.raw, room, user("e6"), user("e7"))
        await create_branch(tenant.raw, room, events[0], parent_branch=1)

        found = await branches_of(tenant.raw, room, page_size)

        assert [
            (b.branch, b.parent_branch, b.fork_seq, b.current, b.last_seq, b.event_count)
            for b in found
        ] == [(1, 0, 0, False, 5, 5), (2, 1, 2, True, 7, 2), (3, 1, 1, False, 0, 0)]
        assert found[0].create_time == (await state(tenant.raw, room)).create_time

    async def test_of_a_missing_conversation_is_not_found(self, tenant: Tenant) -> None:
        refused = await failure(branches_of(tenant.raw, str(uuid4())))

        assert refused.reason == "RESOURCE_NOT_FOUND"

    async def test_a_page_token_continues_only_its_own_list(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        await create_branch(tenant.raw, room, events[0])
        request = pb.ListBranchesRequest(conversation_id=room, page_size=1)
        request.page_token = (await tenant.raw.call("ListBranches", request)).next_page_token
        request.conversation_id = (await five(tenant))[0]

        refused = await failure(tenant.raw.call("ListBranches", request))

        assert refused.reason == "PAGE_TOKEN_INVALID"


class TestViews:
    async def test_of_an_unknown_branch_is_not_found(self, tenant: Tenant) -> None:
        room, _ = await five(tenant)

        refused = await failure(seqs_in(tenant, room, branch=2))

        assert refused.metadata == (("id", "2"), ("resource", "branch"))

    async def test_a_branch_of_all_branches_is_refused(self, tenant: Tenant) -> None:
        room, _ = await five(tenant)

        refused = await failure(seqs_in(tenant, room, branch=1, all_branches=True))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("branch",))

    async def test_pages_stay_on_the_branch_they_began_with(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        request = pb.ListEventsRequest(conversation_id=room, page_size=2)
        first = await tenant.raw.call("ListEvents", request)
        await revert(tenant.raw, room, events[2])
        await append(tenant.raw, room, user("e6"))
        request.page_token = first.next_page_token

        assert await pages(tenant, request) == [3, 4, 5]

    async def test_events_by_id_are_of_any_branch(self, tenant: Tenant) -> None:
        room, events = await five(tenant)
        await revert(tenant.raw, room, events[0])

        found = await tenant.raw.call("BatchGetEvents", pb.BatchGetEventsRequest(event_ids=events))

        assert [event.seq for event in found.events] == [1, 2, 3, 4, 5]
        got = await tenant.raw.call("GetEvent", pb.GetEventRequest(conversation_id=room, seq=5))
        assert got.event.branch == 1

    @pytest.mark.parametrize("seed", range(6))
    async def test_nested_views_are_those_of_copied_lists(self, tenant: Tenant, seed: int) -> None:
        """Whatever is opened, written and selected, in pages of every size, both ways."""
        chance = random.Random(seed)
        room = await empty_conversation(tenant)
        known: dict[int, str] = {}
        model = NaiveConversation()
        for _ in range(25):
            await one_step(tenant, room, model, known, chance)

        for branch, expected in model.lines.items():
            for order, wanted in (
                (pb.SORT_ORDER_ASCENDING, expected),
                (pb.SORT_ORDER_DESCENDING, expected[::-1]),
            ):
                request = pb.ListEventsRequest(
                    conversation_id=room, branch=branch, order=order, page_size=chance.randint(1, 9)
                )
                assert await pages(tenant, request) == wanted
        assert await seqs_in(tenant, room) == model.lines[model.current]
        middle = model.last_seq // 2
        within = [seq for seq in model.lines[model.current] if middle < seq < model.last_seq]
        bounds = {"after_seq": middle, "before_seq": model.last_seq}
        assert await seqs_in(tenant, room, **bounds) == within


async def one_step(
    tenant: Tenant,
    room: str,
    model: NaiveConversation,
    known: dict[int, str],
    chance: random.Random,
) -> None:
    match chance.choice(["append", "append", "open", "open", "select"]):
        case "append":
            branch = chance.choice([0, *model.lines])
            stored = await append(
                tenant.raw, room, *[user("x")] * chance.randint(1, 4), branch=branch
            )
            known.update({event.seq: event.event_id for event in stored.events})
            model.append(len(stored.events), branch)
        case "open":
            parent = chance.choice([0, *model.lines])
            fork_seq = chance.choice([0, *model.lines[parent or model.current]])
            select = chance.random() < 0.5
            opened = await create_branch(
                tenant.raw, room, known.get(fork_seq, ""), parent_branch=parent, select=select
            )
            assert opened.branch == model.open(parent, fork_seq, select=select)
        case "select":
            model.current = chance.choice(list(model.lines))
            await select_branch(tenant.raw, room, model.current)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (1, 2, {*range(16, 101), *range(101, 201)}),
        (3, 2, {*range(116, 201), *range(201, 301)}),
        (3, 1, {*range(16, 101), *range(101, 116), *range(201, 301)}),
        (3, 3, set()),
    ],
)
async def test_what_comes_into_view_or_leaves_it_is_mirrored_again(
    scratch: ScratchDatabase, before: int, after: int, expected: set[int]
) -> None:
    """Three branches of 100 events; each departs 15 events into the one before."""
    rows = NestedBranches(uuid4(), uuid4(), branches=3, each=100, kept=15)
    rows.write(scratch.admin_url)
    async with opened(scratch.app_url) as database:
        branches = PostgresBranches(database)
        await branches.select(rows.tenant_id, rows.conversation_id, before)
        scratch.admin("DELETE FROM annals.outbox")

        await branches.select(rows.tenant_id, rows.conversation_id, after)

    enqueued = scratch.admin(
        "SELECT e.seq FROM annals.outbox AS o JOIN annals.events AS e ON e.event_id = o.key"
    )
    assert {row["seq"] for row in enqueued} == expected


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    await database.open()
    try:
        yield database
    finally:
        await database.close()
