"""ImportConversations takes back whatever an export holds, and nothing that none can hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.appending import append, empty_conversation, ids
from tests.support.changing import delete, edit, restore, revert, store
from tests.support.raw import Failure, failure, outcome
from tests.support.scratch import run
from tests.support.storage import Tenant, fresh_tenant, running_storage, storage_settings
from tests.support.transfers import (
    call,
    exported,
    imported,
    lines,
    remove,
    rich_conversation,
    round_trip,
    sealed,
)

from annals_client import assistant, system, tool_call, tool_result, user
from annals_local.postgres import LocalPostgres

Lines = list[dict[str, Any]]
NOBODY = "01999999-9999-7999-8999-999999999999"
DEEP = "[" * 5_000 + "]" * 5_000
HASH = "0" * 32
TABLES = (
    "conversations", "branches", "events", "observations", "observation_payloads", "memories",
    "attachments", "relationships", "append_requests", "usage_daily",
)  # fmt: skip


async def told(tenant: Tenant) -> str:
    """Calls, results, parents, versions of every kind, an erased event, a branch, a memory."""
    room = await empty_conversation(tenant)
    question, answer = str(uuid4()), str(uuid4())
    stored = await append(
        tenant.raw,
        room,
        user("question", event_id=question, idempotency_key="k"),
        tool_call("c1", "search", parent_event_id=question),
        tool_result("c1", "found"),
        assistant("answer", event_id=answer, parent_event_id=question),
        user("deleted"),
        user("restored"),
        system("erased"),
        request_id=str(uuid4()),
    )
    events = ids(stored)
    await edit(tenant.raw, answer, assistant("better"))
    for event_id in events[4:6]:
        await delete(tenant.raw, event_id)
    await restore(tenant.raw, events[5])
    await call(tenant, "EraseEvent", eventId=events[6])
    await store(tenant.raw, room, "t1", user("turn"))
    await append(tenant.raw, room, tool_call("c2", "later"))
    await call(tenant, "CreateBranch", conversationId=room, eventId=answer)
    await call(tenant, "StoreMemory", memory={
        "conversationId": room, "content": "likes owls", "tags": ["a", "b"]})  # fmt: skip
    await call(tenant, "CreateAttachment", attachment={
        "conversationId": room, "uri": "s3://b/a", "sha256": "ab" * 32})  # fmt: skip
    return room


class TestWhatAnExportHolds:
    """Every one of these comes back as it was, to the byte."""

    async def test_versions_erasures_and_branches(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        await round_trip(tenant, postgres, await told(tenant))

    async def test_results_of_calls_that_are_gone(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room = await empty_conversation(tenant)
        events = ids(
            await append(
                tenant.raw, room,
                tool_call("c1", "t"), tool_result("c1", "r"), tool_call("c2", "t"),
            )
        )  # fmt: skip
        await delete(tenant.raw, events[2])
        await append(tenant.raw, room, tool_result("c2", "r", parent_event_id=events[2]))
        await revert(tenant.raw, room, events[0])
        await append(tenant.raw, room, tool_result("c2", "on another branch"))
        await round_trip(tenant, postgres, room)

        await call(tenant, "EraseEvent", eventId=events[0])

        await round_trip(tenant, postgres, room)

    async def test_a_call_whose_turn_was_stored_again(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room = await empty_conversation(tenant)
        for name in ("c1", "c2"):
            await store(tenant.raw, room, "t", tool_call(name, "t"))
        await append(tenant.raw, room, tool_result("c2", "r"))

        await round_trip(tenant, postgres, room)

    async def test_a_fork_of_what_lost_its_calls(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room = await empty_conversation(tenant)
        events = ids(
            await append(
                tenant.raw, room, tool_call("c1", "t"), tool_result("c1", "r"), user("back")
            )
        )
        await append(tenant.raw, room, user("x", parent_event_id=events[0]))
        await delete(tenant.raw, events[0])
        await delete(tenant.raw, events[2])
        await restore(tenant.raw, events[2])
        forked = await call(tenant, "ForkConversation", conversationId=room)
        fork = forked.conversation.conversation_id
        await append(tenant.raw, fork, tool_call("c1", "t"), tool_result("c1", "r"))

        await round_trip(tenant, postgres, fork)

    async def test_moments_that_callers_named(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room, events = await empty_conversation(tenant), [user("first"), user("last")]
        events[0].event_time.FromJsonString("0001-01-01T00:00:00Z")
        events[1].event_time.FromJsonString("9999-12-31T23:59:59.999999Z")
        await append(tenant.raw, room, *events)

        await round_trip(tenant, postgres, room)

    async def test_the_deepest_input_an_append_takes(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room = await empty_conversation(tenant)
        taken, refused = 1, 5_000
        while refused - taken > 1:
            levels = (taken + refused) // 2
            # So large that a thread with a stack of its own counts its tokens.
            deep = "[" * levels + f'"{"x" * 70_000}"' + "]" * levels
            answer = await outcome(append(tenant.raw, room, tool_call("c", "t", deep)))
            if isinstance(answer, Failure):
                assert answer.fields == ("events[0].tool_call.input_json",)
                refused = levels
            else:
                taken = levels
        assert taken > 100

        await round_trip(tenant, postgres, room)

    async def test_words_in_cold_storage(self, postgres: LocalPostgres, tmp_path: Path) -> None:
        settings = storage_settings(
            postgres, tmp_path / "data", cold_storage_url=(tmp_path / "cold").as_uri()
        )
        async with running_storage(settings) as storage, fresh_tenant(storage) as tenant:
            for room in (await rich_conversation(tenant), await told(tenant)):
                assert (await call(tenant, "MoveToColdStorage", conversationId=room)).event_count
                await round_trip(tenant, postgres, room)


def event_id_of(seq: int) -> Callable[[Lines], str]:
    """The id of the event at a place."""
    return lambda found: next(
        line["event_id"] for line in found if line["line"] == "event" and line["seq"] == seq
    )


def observed(seq: int, version: int) -> Callable[[dict[str, Any], Lines], bool]:
    """The observation of a version of the event at a place."""
    return lambda line, found: (
        line["line"] == "observation"
        and (line["event_id"], line["version"]) == (event_id_of(seq)(found), version)
    )


def event(seq: int) -> Callable[[dict[str, Any], Lines], bool]:
    """The event at a place."""
    return lambda line, _: line["line"] == "event" and line["seq"] == seq


def kind(name: str) -> Callable[[dict[str, Any], Lines], bool]:
    """The only line of a kind."""
    return lambda line, _: line["line"] == name


ABSENT = object()
CASES = [
    (event(2), "parent_event_id", event_id_of(2), "parent_event_id names no earlier event"),
    (event(2), "parent_event_id", event_id_of(4), "parent_event_id names no earlier event"),
    (event(2), "parent_event_id", NOBODY, "parent_event_id names no earlier event"),
    (observed(4, 1), "payload.parent_event_id", NOBODY, "parent_event_id names no earlier event"),
    (event(3), "tool_call_id", "c9", "tool_call_id names no tool call earlier"),
    (event(3), "tool_call_id", "c2", "tool_call_id names no tool call earlier"),
    (event(2), "tool_input", "{", "tool_input must be valid JSON"),
    (event(2), "tool_input", "", "tool_input must be valid JSON"),
    (event(2), "tool_input", "NaN", "tool_input must be valid JSON"),
    (event(2), "tool_input", DEEP, "tool_input must be valid JSON"),
    (event(2), "tool_call_id", "", "tool_call_id must be a text of 1"),
    (event(2), "tool_name", "", "tool_name must be a text of 1"),
    (event(2), "is_error", True, "is_error must be false in a tool_call"),
    (event(2), "origin_event_id", NOBODY, "origin_event_id belongs to the first events of a fork"),
    (event(8), "turn_id", "a\nb", "turn_id must not contain control characters"),
    (event(8), "turn_id", "a\x7fb", "turn_id must not contain control characters"),
    (event(8), "turn_id", "", "turn_id must be a text of 1"),
    (event(8), "model", "", "model must be a text of 1"),
    (event(8), "version", 7, "what the event was at this version"),
    (event(8), "event_time", "0000-01-01T00:00:00.000000Z", "event_time must be a time"),
    (event(8), "event_time", "2025-01-01T24:00:00.000000Z", "event_time must be a time"),
    (event(8), "created_at", "9999-12-31T23:59:59.999999Z", "created_at must not lie in the"),
    (event(5), "deleted_at", ABSENT, "where the event has deleted_at"),
    (event(7), "model", "m", "model: an erased event has no words"),
    (event(7), "token_count", 3, "token_count must be 0 in an erased event"),
    (event(3), "token_count", 9, "token_count must be 1: its words have so many"),
    (observed(4, 1), "payload.token_count", 9, "token_count must be 1: its words have so many"),
    (event(7), "status", "pending", "status must be complete in an erased event"),
    (event(4), "superseded_by", event_id_of(1), "superseded_by"),
    (observed(1, 1), "idempotency_key", "", "idempotency_key must be a text of 1"),
    (observed(1, 1), "payload_hash", "ab" * 15, "payload_hash must be a hash of 0 or 32"),
    (observed(1, 1), "payload_hash", "", "payload_hash must not be empty where kind is store"),
    (observed(5, 2), "payload_hash", HASH, "payload_hash must be empty where kind is delete"),
    (observed(1, 1), "kind", "edit", "kind must be store at version 1"),
    (observed(4, 2), "kind", "delete", "kind must be delete where"),
    (observed(4, 1), "payload", ABSENT, "payload is missing"),
    (observed(4, 1), "payload.version", 2, "payload: version must be that of the observation"),
    (observed(4, 1), "payload.erased_at", "2025-01-01T00:00:00.000000Z", "payload: erased_at"),
    (observed(6, 2), "version", 3, "versions must rise by one"),
    (kind("branch"), "fork_seq", 99, "fork_seq must be 0 or of an event"),
    (kind("memory"), "tags", ["a", "b", "a"], "tags must not hold a text twice"),
    (kind("memory"), "tags", [""], "tags must be a text of 1"),
    (kind("memory"), "content", " \n", "content must contain a word"),
    (kind("memory"), "payload_hash", HASH * 2, "payload_hash must be a hash of 32"),
    (kind("memory"), "idempotency_key", "", "idempotency_key must be a text of 1"),
    (kind("attachment"), "sha256", "ab", "sha256 must be empty or 64"),
    (kind("attachment"), "sha256", "x" * 64, "sha256 must be empty or 64"),
    (kind("attachment"), "sha256", "AB" * 32, "sha256 must be empty or 64"),
    (kind("attachment"), "created_at", "9999-01-01T00:00:00.000000Z", "must not lie in the"),
    (kind("request"), "payload_hash", "", "payload_hash must be a hash of 32"),
    (kind("conversation"), "host_id", "", "host_id must be a text of 1"),
    (kind("conversation"), "creation_hash", "ab", "creation_hash must be a hash of 32"),
    (kind("conversation"), "active_at", "9999-01-01T00:00:00.000000Z", "must not lie in the"),
    (kind("conversation"), "client_context", {"locale": ""}, "client_context must be a text of 1"),
]  # fmt: skip
LATE = {
    "what the event was at this version": 1,
    "where the event has deleted_at": 2,
    "superseded_by": None,
}
"""Seen so many lines behind the one that is wrong; None: at the end."""


class TestWhatNoExportHolds:
    """One member of an export is changed; nothing of it is stored."""

    @pytest.fixture
    async def found(self, tenant: Tenant, postgres: LocalPostgres) -> Lines:
        """The lines of a conversation that is not there any more."""
        room = await told(tenant)
        data = await exported(tenant, room)
        remove(postgres, tenant.tenant_id, room)
        return lines(data)

    @pytest.fixture(autouse=True)
    async def nothing_stays(self, tenant: Tenant, postgres: LocalPostgres) -> Any:
        yield
        for table in TABLES:
            query = f"SELECT count(*) AS n FROM annals.{table} WHERE tenant_id = %s"
            assert run(postgres.admin_url, query, [tenant.tenant_id])[0]["n"] == 0, table

    @pytest.mark.parametrize(
        ("where", "member", "value", "cause"),
        CASES,
        ids=[f"{member}-{cause}"[:60] for _, member, _, cause in CASES],
    )
    async def test_is_refused(
        self, tenant: Tenant, found: Lines, where: Any, member: str, value: Any, cause: str
    ) -> None:
        place = next(i for i, line in enumerate(found) if where(line, found))
        _set(found[place], member, value(found) if callable(value) else value)

        refused = await failure(imported(tenant, sealed(found)))

        behind = LATE.get(cause, 0)
        line = len(found) if behind is None else place + 1 + behind
        check(refused, cause, line=line)

    async def test_an_observation_is_missing(self, tenant: Tenant, found: Lines) -> None:
        for seq, version in ((1, 1), (4, 2), (6, 2)):
            place = next(i for i, line in enumerate(found) if observed(seq, version)(line, found))
            without = [*found[:place], *found[place + 1 :]]

            refused = await failure(imported(tenant, sealed(without)))

            check(refused, "version", line=place + 1)

    async def test_an_erased_event_is_observed(self, tenant: Tenant, found: Lines) -> None:
        place = next(i for i, line in enumerate(found) if event(7)(line, found))
        other = next(line for line in found if observed(1, 1)(line, found))
        found.insert(place + 1, {**other, "event_id": found[place]["event_id"]})

        refused = await failure(imported(tenant, sealed(found)))

        check(refused, "an erased event has no observations", line=place + 2)


def _set(line: dict[str, Any], member: str, value: Any) -> None:
    *outer, name = member.split(".")
    for key in outer:
        line = line[key]
    line.pop(name, None)
    if value is not ABSENT:
        line[name] = value


def check(refused: Failure, cause: str, *, line: int) -> None:
    assert (refused.code.name, refused.reason) == ("INVALID_ARGUMENT", "IMPORT_INVALID"), refused
    assert cause in refused.message
    assert dict(refused.metadata)["line"] == str(line), refused.message
    assert len(refused.message) < 400
