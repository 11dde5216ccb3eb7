"""PrepareContext follows branches, and leaves out what is not, or not any more, said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.waiting import eventually

from annals_client import AsyncAnnalsClient, assistant, user
from annals_client.errors import InvalidArgumentError, NotFoundError

FACT = "The spare anchor is stored in shed seven."
OTHER_FACT = "The spare anchor is stored in shed nine."


async def contents(annals: AsyncAnnalsClient, conversation_id: str, **options: Any) -> list[str]:
    options = {"budget_tokens": 1_000, **options}
    prepared = await annals.context.prepare(conversation_id, **options)
    return [message["content"] for message in json.loads(prepared.payload)]


async def test_the_current_branch_is_shown_unless_told(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append("", [user("one"), assistant("two"), user("three")])
    room = stored.conversation_id
    await annals.events.revert(room, stored.events[0].event_id)
    await annals.events.append(room, [assistant("other"), user("end")])

    assert await contents(annals, room) == ["one", "other", "end"]
    assert await contents(annals, room, branch=2) == ["one", "other", "end"]
    assert await contents(annals, room, branch=1) == ["one", "two", "three"]
    await annals.events.select_branch(room, 1)
    assert await contents(annals, room) == ["one", "two", "three"]


async def test_the_versions_change_with_the_branch(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append("", [user("one"), user("two")])
    room = stored.conversation_id
    before = await annals.context.prepare(room, budget_tokens=1_000)

    await annals.events.revert(room, stored.events[0].event_id)
    after = await annals.context.prepare(room, budget_tokens=1_000)
    await annals.events.select_branch(room, 1)
    back = await annals.context.prepare(room, budget_tokens=1_000)

    assert before.context_version != after.context_version
    assert back.context_version == before.context_version
    assert before.conversation_version < after.conversation_version < back.conversation_version
    assert (before.omitted_events, after.omitted_events) == (0, 0)


async def test_a_search_stays_on_the_branch(annals: AsyncAnnalsClient) -> None:
    start = await annals.events.append("", user("Hello."))
    room = start.conversation_id
    notes = [user(f"Note {i}: the weather was grey and nothing happened.") for i in range(80)]
    await annals.events.append(room, [user(FACT), *notes])
    await annals.events.revert(room, start.events[0].event_id)
    await annals.events.append(room, [user(OTHER_FACT), *notes])
    await eventually(
        lambda: annals.index.status(conversation_id=room), lambda status: status.pending_count == 0
    )

    async def payload(branch: int) -> str:
        prepared = await annals.context.prepare(
            room,
            budget_tokens=400,
            query="Where is the spare anchor?",
            read_your_writes=True,
            branch=branch,
            timeout=30,
        )
        assert not prepared.degraded
        return prepared.payload

    for branch, here, elsewhere in (
        (0, "nine", "seven"),
        (2, "nine", "seven"),
        (1, "seven", "nine"),
    ):
        found = await payload(branch)
        assert f"shed {here}" in found
        assert f"shed {elsewhere}" not in found


async def test_an_unknown_branch_is_not_found(annals: AsyncAnnalsClient) -> None:
    room = (await annals.events.append("", user("one"))).conversation_id

    with pytest.raises(NotFoundError):
        await annals.context.prepare(room, budget_tokens=100, branch=7)
    with pytest.raises(InvalidArgumentError) as refused:
        await annals.context.prepare(room, budget_tokens=100, branch=-1)
    assert [it.field for it in refused.value.violations] == ["branch"]


async def test_deleted_events_are_gone_and_come_back(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append("", [user("one"), user("two")])
    room, second = stored.conversation_id, stored.events[1].event_id

    await annals.events.delete(second)
    assert await contents(annals, room) == ["one"]
    await annals.events.restore(second)
    assert await contents(annals, room) == ["one", "two"]


async def test_edited_events_show_what_they_say_now(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append("", [user("order 4711")])

    await annals.events.edit(stored.events[0].event_id, user("order 4712"))

    assert await contents(annals, stored.conversation_id) == ["order 4712"]


async def test_pending_and_failed_events_are_left_out_and_incomplete_ones_stay(
    annals: AsyncAnnalsClient,
) -> None:
    stored = await annals.events.append(
        "",
        [
            user("question"),
            assistant("still comi", status="pending"),
            assistant("went wrong", status="failed"),
            assistant("cut off", status="incomplete"),
            user("never sent", status="failed"),
        ],
    )
    room = stored.conversation_id

    assert await contents(annals, room) == ["question", "cut off"]
    assert await contents(annals, room, query="what went wrong?", read_your_writes=True) == [
        "question",
        "cut off",
    ]
