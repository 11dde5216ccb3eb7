"""From one context to the next over real gRPC: more of this, less of that, another focus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.context import RunningContext
from tests.support.storage import ADMIN_KEY, RunningStorage, Tenant, fresh_tenant
from tests.support.summaries import put, summary_of
from tests.support.waiting import eventually

from annals.context.v1 import context_service_pb2 as pb
from annals.context.v1 import resources_pb2 as res
from annals_client import AsyncAnnalsClient, assistant, tool_call, tool_result, user
from annals_client.errors import (
    BudgetTooSmallError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
)
from annals_common.tokenizers import count_tokens, load_encoding

FULL, SNIPPET, STUB = (
    res.DETAIL_LEVEL_FULL,
    res.DETAIL_LEVEL_SNIPPET,
    res.DETAIL_LEVEL_STUB,
)
BUDGET_TOKENS = 700
STORY = "The crew of the ferry wrote down what they saw at sea. "
CALL, RESULT, GIANT = 31, 32, 40


@dataclass(frozen=True, slots=True)
class Room:
    """A conversation of sixty long notes with a tool pair and a giant among them."""

    client: AsyncAnnalsClient
    conversation_id: str
    tenant: Tenant

    async def prepare(self, **options: Any) -> pb.PrepareContextResponse:
        wanted = {"budget_tokens": BUDGET_TOKENS, "relevant_events": 0, **options}
        return await self.client.context.prepare(self.conversation_id, **wanted)


def note(i: int) -> str:
    return f"Note {i}: {STORY * 4}That was note {i}."


@pytest.fixture(scope="module")
async def room(storage: RunningStorage, context: RunningContext) -> AsyncIterator[Room]:
    events = [user(note(i)) if i % 2 else assistant(note(i)) for i in range(1, 61)]
    events[CALL - 1] = tool_call("call_1", "get_tide", {"port": "Calais " * 10})
    events[RESULT - 1] = tool_result("call_1", f"The tide: {STORY * 3}")
    events[GIANT - 1] = assistant(STORY * 80)
    async with (
        fresh_tenant(storage) as tenant,
        AsyncAnnalsClient(
            storage.address, context.address, api_key=tenant.api_key, admin_key=ADMIN_KEY
        ) as client,
    ):
        stored = await client.events.append("", events)
        yield Room(client, stored.conversation_id, tenant)


def levels(context: pb.PrepareContextResponse) -> dict[str, int]:
    return {item.handle: item.detail for item in context.items}


def changed(changes: Sequence[res.DetailChange]) -> dict[str, tuple[int, int]]:
    return {change.handle: (change.before, change.after) for change in changes}


def check_budget(context: pb.PrepareContextResponse, budget_tokens: int = BUDGET_TOKENS) -> None:
    assert context.total_tokens == count_tokens(load_encoding("o200k_base"), context.payload)
    assert context.total_tokens <= budget_tokens
    assert sum(entry.tokens for entry in context.ledger) == context.total_tokens


def check_changes(before: pb.PrepareContextResponse, step: pb.ExpandDetailResponse) -> None:
    """Every difference is told, and nothing else."""
    was, now = levels(before), levels(step.context)
    handles = was.keys() | now.keys()
    assert changed(step.changes) == {
        name: (was.get(name, 0), now.get(name, 0))
        for name in handles
        if was.get(name, 0) != now.get(name, 0)
    }


async def test_expanding_shows_every_word_and_tells_what_made_room(room: Room) -> None:
    before = await room.prepare()
    assert levels(before).get("#20", 0) != FULL

    step = await room.client.context.expand(before.view, ["#20"])

    check_budget(step.context)
    check_changes(before, step)
    assert note(20) in step.context.payload
    assert levels(step.context)["#20"] == FULL
    assert not step.conversation_changed
    assert step.context.context_version != before.context_version


async def test_expanding_a_summary_shows_what_it_quotes(room: Room) -> None:
    before = await room.prepare()
    [quoted] = await event_ids(room, 21)
    [summary] = await put(room.tenant, room.conversation_id, summary_of(21, 30, cites=quoted))

    step = await room.client.context.expand(before.view, [summary.summary_id])

    check_budget(step.context)
    check_changes(before, step)
    assert levels(step.context)["#21"] == FULL
    for view, handles, error in (
        (before.view, [summary.summary_id.replace("-", "0", 1)[:36]], InvalidArgumentError),
        (before.view, ["01999999-9999-7999-8999-999999999999"], NotFoundError),
        ((await elsewhere(room)).view, [summary.summary_id], NotFoundError),
    ):
        with pytest.raises(error):
            await room.client.context.expand(view, handles)
    with pytest.raises(InvalidArgumentError, match="handle of an event"):
        await room.client.context.collapse(before.view, [summary.summary_id])


async def event_ids(room: Room, *seqs: int) -> list[str]:
    listed = [event async for event in room.client.events.list(room.conversation_id)]
    return [event.event_id for event in listed if event.seq in seqs]


async def elsewhere(room: Room) -> pb.PrepareContextResponse:
    """A context of another conversation of the tenant."""
    other = await room.client.events.append("", [user("Somewhere else.")])
    return await room.client.context.prepare(other.conversation_id, budget_tokens=BUDGET_TOKENS)


async def test_a_result_comes_with_its_call(room: Room) -> None:
    before = await room.prepare()

    step = await room.client.context.expand(before.view, [f"#{RESULT}"])

    check_budget(step.context)
    assert (levels(step.context)[f"#{CALL}"], levels(step.context)[f"#{RESULT}"]) == (FULL, FULL)
    assert "Calais" in step.context.payload
    assert "The tide:" in step.context.payload


async def test_what_is_collapsed_is_a_stub_at_most_until_it_is_expanded(room: Room) -> None:
    before = await room.prepare()
    assert levels(before)["#60"] == FULL

    step = await room.client.context.collapse(before.view, ["#60", "#59"])

    check_budget(step.context)
    check_changes(before, step)
    assert levels(step.context)["#60"] == STUB
    assert levels(step.context).get("#59", 0) in (0, STUB)
    again = await room.client.context.expand(step.context.view, ["#60"])
    assert levels(again.context)["#60"] == FULL


async def test_a_whole_conversation_is_collapsed_in_part(room: Room) -> None:
    stored = await room.client.events.append("", [user("one"), assistant("two"), user("three")])
    before = await room.client.context.prepare(stored.conversation_id, budget_tokens=200)

    step = await room.client.context.collapse(before.view, ["#2"])

    assert levels(step.context) == {"#1": FULL, "#2": STUB, "#3": FULL}
    assert "two" not in step.context.payload


async def test_later_expansions_push_out_earlier_ones(room: Room) -> None:
    context = await room.prepare()
    pushed_out: set[str] = set()
    for i in range(10, 30):
        before, handle = levels(context), f"#{i}"
        step = await room.client.context.expand(context.view, [handle])
        context = step.context
        check_budget(context)
        assert levels(context)[handle] == FULL
        pushed_out |= {
            name
            for name, (was, now) in changed(step.changes).items()
            if was == FULL and now != FULL and name in before
        }
    assert "#10" in pushed_out
    assert len(context.view) <= 65_536


async def test_what_cannot_fit_says_how_large_a_budget_would_hold_it(room: Room) -> None:
    before = await room.prepare()

    with pytest.raises(BudgetTooSmallError) as refused:
        await room.client.context.expand(before.view, [f"#{GIANT}"])

    minimum = refused.value.minimum_budget_tokens
    enough = await room.prepare(budget_tokens=minimum)
    step = await room.client.context.expand(enough.view, [f"#{GIANT}"])
    check_budget(step.context, minimum)
    assert levels(step.context)[f"#{GIANT}"] == FULL
    less = await room.prepare(budget_tokens=minimum - 1)
    with pytest.raises(BudgetTooSmallError):
        await room.client.context.expand(less.view, [f"#{GIANT}"])


async def test_a_focus_replaces_the_query_and_ends(room: Room) -> None:
    stored = await room.client.events.append(
        "",
        [
            user("The spare anchor is in shed seven."),
            user("The captain's dog is called Bosun."),
            *(user(f"Log entry {i}: grey weather, nothing happened.") for i in range(55)),
        ],
    )
    await eventually(
        room.client.index.status, lambda status: status.pending_count == 0, timeout_s=60.0
    )
    first = await room.client.context.prepare(
        stored.conversation_id,
        budget_tokens=120,
        query="Where is the spare anchor?",
        recent_events=1,
        relevant_events=1,
    )
    assert not first.degraded
    assert "shed seven" in first.payload

    step = await room.client.context.focus_on(first.view, "What is the dog's name?")

    check_budget(step.context, 120)
    check_changes(first, step)
    assert "Bosun" in step.context.payload
    back = await room.client.context.focus_on(step.context.view, "")
    assert back.context.payload == first.payload


async def test_new_events_are_told_apart_from_what_the_step_did(room: Room) -> None:
    stored = await room.client.events.append("", [user("one"), user("two")])
    before = await room.client.context.prepare(stored.conversation_id, budget_tokens=200)
    await room.client.events.append(stored.conversation_id, [user("three")])

    step = await room.client.context.expand(before.view, ["#1"])

    assert step.conversation_changed
    assert changed(step.changes) == {"#3": (0, FULL)}


async def test_a_view_stays_on_its_branch(room: Room) -> None:
    stored = await room.client.events.append("", [user("one"), user("two")])
    conversation_id = stored.conversation_id
    before = await room.client.context.prepare(conversation_id, budget_tokens=200)
    await room.client.events.revert(conversation_id, stored.events[0].event_id)
    await room.client.events.append(conversation_id, [user("elsewhere")])

    step = await room.client.context.expand(before.view, ["#2"])

    assert levels(step.context) == {"#1": FULL, "#2": FULL}
    with pytest.raises(NotFoundError):
        await room.client.context.expand(before.view, ["#3"])


class TestHandles:
    async def test_of_others_of_nobody_and_of_the_erased_are_alike(self, room: Room) -> None:
        stored = await room.client.events.append("", [user("one"), user("two"), user("three")])
        other = await room.client.events.append("", [user("x") for _ in range(9)])
        conversation_id = stored.conversation_id
        before = await room.client.context.prepare(conversation_id, budget_tokens=200)
        await room.client.erasure.event(stored.events[0].event_id)
        await room.client.events.delete(stored.events[1].event_id)

        for handle in ("#1", "#2", "#4", "#999999", f"{other.conversation_id}#3"):
            for step in (room.client.context.expand, room.client.context.collapse):
                with pytest.raises(NotFoundError) as refused:
                    await step(before.view, ["#3", handle])
                assert refused.value.metadata == {"resource": "event", "id": handle}
        named = await room.client.context.expand(before.view, [f"{conversation_id}#3"])
        assert levels(named.context) == {"#3": FULL}

    @pytest.mark.parametrize("handle", ["", "3", "#", "#0", "#-1", "#1 ", "x#1", "#1#2", "#٣"])
    async def test_that_are_none_are_refused(self, room: Room, handle: str) -> None:
        view = (await room.prepare()).view

        with pytest.raises(InvalidArgumentError) as refused:
            await room.client.context.expand(view, ["#1", handle])
        assert [it.field for it in refused.value.violations] == ["handles[1]"]

    async def test_must_be_some_and_not_too_many(self, room: Room) -> None:
        view = (await room.prepare()).view

        with pytest.raises(InvalidArgumentError):
            await room.client.context.expand(view, [])
        with pytest.raises(LimitExceededError):
            await room.client.context.expand(view, ["#1"] * 101)

    async def test_of_what_the_context_leaves_out_are_refused(self, room: Room) -> None:
        view = (await room.prepare(include_tool_calls=False)).view

        with pytest.raises(InvalidArgumentError) as refused:
            await room.client.context.expand(view, [f"#{CALL}"])
        assert [it.field for it in refused.value.violations] == ["handles[0]"]


async def test_what_was_expanded_and_then_erased_is_gone(room: Room) -> None:
    stored = await room.client.events.append("", [user("secret"), user("two"), user("three")])
    before = await room.client.context.prepare(stored.conversation_id, budget_tokens=200)
    step = await room.client.context.expand(before.view, ["#1"])
    await room.client.erasure.event(stored.events[0].event_id)

    again = await room.client.context.collapse(step.context.view, ["#2"])

    assert "secret" not in again.context.payload
    assert changed(again.changes) == {"#1": (FULL, 0), "#2": (FULL, STUB)}
    await room.client.erasure.conversation(stored.conversation_id)
    with pytest.raises(NotFoundError) as refused:
        await room.client.context.expand(again.context.view, ["#3"])
    assert refused.value.metadata["resource"] in ("conversation", "event")
