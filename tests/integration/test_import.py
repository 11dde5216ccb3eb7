"""ImportConversations: the round trip loses nothing, hostile files store nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.security.test_foreign_ids import rows_of
from tests.support.appending import append, check_counters, listed, state
from tests.support.raw import Failure, failure
from tests.support.scratch import run
from tests.support.storage import Tenant, fresh_tenant, running_storage, storage_settings
from tests.support.transfers import (
    call,
    exported,
    file_of,
    imported,
    lines,
    parts,
    remove,
    rich_conversation,
    small_conversation,
)
from tests.support.waiting import eventually

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.transfer_lines import LINES, Kind

Lines = list[dict[str, Any]]
NOBODY = "01999999-9999-7999-8999-999999999999"


def two_members(data: bytes) -> bytes:
    """Packed in two pieces, as gzip allows."""
    return gzip.compress(data[:99]) + gzip.compress(data[99:])


async def refuse(tenant: Tenant, data: bytes) -> Failure:
    return await failure(imported(tenant, data))


def check(refused: Failure, cause: str, *, line: int | None = None) -> None:
    assert (refused.code.name, refused.reason) == ("INVALID_ARGUMENT", "IMPORT_INVALID"), refused
    assert cause in refused.message
    if line is not None:
        assert dict(refused.metadata)["line"] == str(line)


async def test_the_round_trip_is_equal_to_the_bit(tenant: Tenant, postgres: LocalPostgres) -> None:
    room = await rich_conversation(tenant)
    before = await exported(tenant, room)
    remove(postgres, tenant.tenant_id, room)

    answer = await imported(tenant, before)

    assert (answer.conversation_count, answer.event_count, answer.memory_count) == (1, 10, 2)
    assert list(answer.conversation_ids) == [room]
    assert await exported(tenant, room) == before


async def test_every_row_is_back_as_it_was(tenant: Tenant, postgres: LocalPostgres) -> None:
    room = await rich_conversation(tenant)
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)
    before = rows_of(postgres, tenant.tenant_id)
    data = await exported(tenant, room)
    remove(postgres, tenant.tenant_id, room)

    await imported(tenant, data)
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)

    after = rows_of(postgres, tenant.tenant_id)
    # Jobs count how often something changed: what is imported changed once.
    for table in before.keys() - {"jobs"}:
        assert _comparable(table, after) == _comparable(table, before), table


def _comparable(table: str, tables: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Without what is made anew: embeddings, and which transaction it was.

    A deleted event has chunks if the indexer came by before the deletion.
    """
    new = {"chunks": {"chunk_id", "embedding"}, "observations": {"xid"}}.get(table, set())
    rows = tables[table]
    if table == "chunks":
        deleted = {row["event_id"] for row in tables["events"] if row["deleted_at"]}
        rows = [row for row in rows if row["event_id"] not in deleted]
    return sorted(repr({k: v for k, v in row.items() if k not in new}) for row in rows)


async def test_after_an_erasure_too(tenant: Tenant) -> None:
    room = await rich_conversation(tenant)
    before = await exported(tenant, room)
    await call(tenant, "EraseConversation", conversationId=room)

    await imported(tenant, before)

    assert await exported(tenant, room) == before
    found = await eventually(
        lambda: tenant.client.search.events("second store"), lambda answer: answer.hits
    )
    assert found.hits[0].event.conversation_id == room


async def test_keys_and_counters_go_on_where_they_were(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    room = await small_conversation(tenant, "a", "b")
    request_id = str(uuid4())
    stored = await append(tenant.raw, room, user("c", idempotency_key="k"), request_id=request_id)
    data = await exported(tenant, room)
    remove(postgres, tenant.tenant_id, room)
    await imported(tenant, data)

    by_request = await append(
        tenant.raw, room, user("c", idempotency_key="k"), request_id=request_id
    )
    by_key = await append(tenant.raw, room, user("c", idempotency_key="k"))
    await append(tenant.raw, room, user("d"))

    assert [event.replayed for event in (*by_request.events, *by_key.events)] == [True, True]
    assert by_key.events[0].event_id == stored.events[0].event_id
    await check_counters(tenant, room, expected=["a", "b", "c", "d"])


async def test_importing_twice_stores_once(tenant: Tenant) -> None:
    rooms = [await rich_conversation(tenant), await small_conversation(tenant)]
    data = b"".join([await exported(tenant, room) for room in rooms])

    answer = await imported(tenant, data)

    assert (answer.conversation_count, answer.skipped_conversation_count) == (0, 2)
    assert list(answer.conversation_ids) == rooms


async def test_a_conversation_that_went_on_is_in_the_way_of_the_whole_file(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    new, changed = await small_conversation(tenant), await small_conversation(tenant)
    data = await exported(tenant, new) + await exported(tenant, changed)
    remove(postgres, tenant.tenant_id, new)
    await append(tenant.raw, changed, user("more"))

    refused = await refuse(tenant, data)

    assert (refused.code.name, refused.reason) == ("ALREADY_EXISTS", "RESOURCE_ALREADY_EXISTS")
    assert dict(refused.metadata)["id"] == changed
    assert [c.conversation_id async for c in tenant.client.conversations.list()] == [changed]


async def test_events_that_exist_elsewhere_are_refused(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    room = await small_conversation(tenant)
    other = str(uuid4())
    moved = lines((await exported(tenant, room)).replace(room.encode(), other.encode()))
    by_request = await refuse(tenant, file_of(moved))
    del moved[1]["request_id"]

    refused = await refuse(tenant, file_of(moved))

    assert by_request.reason == "RESOURCE_ALREADY_EXISTS"
    assert dict(by_request.metadata)["resource"] == "conversation with this request_id"

    assert refused.reason == "RESOURCE_ALREADY_EXISTS"
    assert dict(refused.metadata)["resource"] == "event"


async def test_two_imports_at_once_store_one(tenant: Tenant, postgres: LocalPostgres) -> None:
    room = await small_conversation(tenant, *map(str, range(300)))
    data = await exported(tenant, room)
    remove(postgres, tenant.tenant_id, room)

    answers = await asyncio.gather(imported(tenant, data), imported(tenant, data))

    assert sorted(answer.conversation_count for answer in answers) == [0, 1]
    assert sorted(answer.skipped_conversation_count for answer in answers) == [0, 1]
    assert await exported(tenant, room) == data


@pytest.mark.parametrize("pack", [gzip.compress, two_members])
async def test_packed_files_are_taken(
    tenant: Tenant, postgres: LocalPostgres, pack: Callable[[bytes], bytes]
) -> None:
    room = await small_conversation(tenant, "packed")
    data = await exported(tenant, room)
    remove(postgres, tenant.tenant_id, room)

    assert (await imported(tenant, pack(data))).conversation_count == 1
    assert await exported(tenant, room) == data


class TestHostile:
    """Nothing of any of these files is stored."""

    @pytest.fixture
    async def found(self, tenant: Tenant, postgres: LocalPostgres) -> Lines:
        """The lines of a conversation that is not there any more."""
        room = await rich_conversation(tenant)
        data = await exported(tenant, room)
        remove(postgres, tenant.tenant_id, room)
        return lines(data)

    @pytest.fixture(autouse=True)
    async def nothing_stays(self, tenant: Tenant, postgres: LocalPostgres) -> Any:
        yield
        for table in ("conversations", "events", "observations", "memories", "branches"):
            query = f"SELECT count(*) AS n FROM annals.{table} WHERE tenant_id = %s"
            assert run(postgres.admin_url, query, [tenant.tenant_id])[0]["n"] == 0, table

    async def test_truncated_anywhere(self, tenant: Tenant, found: Lines) -> None:
        data = file_of(found)
        for cut in (0, 1, 50, len(data) // 2, data.rfind(b"\n", 0, len(data) - 1), len(data) - 5):
            check(await refuse(tenant, data[:cut]), "")

    async def test_with_a_line_missing(self, tenant: Tenant, found: Lines) -> None:
        without = [line for line in found if line["line"] != "memory"]

        check(await refuse(tenant, file_of(without, counted=False)), "does not count the lines")
        check(await refuse(tenant, file_of(without)), "memory_count")

    async def test_changed_by_a_letter(self, tenant: Tenant, found: Lines) -> None:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in found)
        check(await refuse(tenant, text.replace("likes owls", "likes bats").encode()), "sha256")

    async def test_of_another_tenant(self, tenant: Tenant, other_tenant: Tenant) -> None:
        theirs = await exported(other_tenant, await small_conversation(other_tenant))

        check(await refuse(tenant, theirs), "another tenant", line=1)

    async def test_of_an_agent_that_is_not_there(self, tenant: Tenant, found: Lines) -> None:
        found[1]["agent_id"] = str(uuid4())

        check(await refuse(tenant, file_of(found)), "there is no agent", line=2)

    @pytest.mark.parametrize(
        ("kind", "member", "value", "cause"),
        [
            ("header", "version", 2, "version"),
            ("header", "format", "other", "format"),
            ("conversation", "next_seq", 99, "next_seq"),
            ("conversation", "event_count", 99, "event_count"),
            ("conversation", "token_count", 1, "token_count"),
            ("conversation", "current_branch", 9, "current_branch"),
            ("conversation", "user_id", "u", "both user_id and session_id"),
            ("conversation", "status", "odd", "status"),
            ("conversation", "title", "x" * 501, "title"),
            ("conversation", "surprise", 1, "not known"),
            ("conversation", "created_at", "yesterday", "created_at"),
            ("conversation", "created_at", "2025-02-30T00:00:00.000000Z", "created_at"),
            ("branch", "view_until", [9], "view"),
            ("branch", "parent_branch", 7, "parent_branch"),
            ("branch", "fork_seq", -1, "fork_seq"),
            ("event", "seq", 2, "seq must be 1"),
            ("event", "branch", 7, "branch"),
            ("event", "type", "odd", "type"),
            ("event", "role", None, "role"),
            ("event", "content", "x" * (1024 * 1024 + 1), "content"),
            ("event", "content", "a\x00b", "NUL"),
            ("event", "content", 5, "content"),
            ("event", "tool_name", "t", "does not belong"),
            ("event", "event_id", "17", "event_id"),
            ("event", "metadata", {"a": "x" * 70_000}, "metadata"),
            ("event", "metadata", [], "metadata"),
            ("event", "parent_event_id", NOBODY, "parent_event_id"),
            ("event", "token_count", 1, "token_count must be "),
            ("event", "version", 0, "version"),
            ("event", "usage", {"input_tokens": 1}, "usage"),
            ("observation", "version", 7, "versions must rise"),
            ("observation", "event_id", NOBODY, "behind its event"),
            ("observation", "payload_hash", "xyz", "payload_hash"),
            ("memory", "content", "", "content"),
            ("memory", "embedding", "AAAA", "caller_embedding"),
            ("attachment", "uri", "", "uri"),
            ("relationship", "score", 2, "score"),
            ("relationship", "source_id", NOBODY, "source_id"),
            ("usage", "day", "2025-13-01", "day"),
            ("request", "event_ids", [NOBODY], "event_ids"),
            ("end", "surprise", 1, "not known"),
        ],
    )  # fmt: skip
    async def test_with_a_wrong_member(
        self, tenant: Tenant, found: Lines, kind: str, member: str, value: Any, cause: str
    ) -> None:
        place = next(i for i, line in enumerate(found) if line["line"] == kind)
        found[place][member] = value
        if value is None:
            del found[place][member]

        refused = await refuse(tenant, file_of(found, counted=kind != "end"))

        check(refused, cause)
        assert len(refused.message) < 400

    @pytest.mark.parametrize(
        ("raw", "cause"),
        [
            (b"\xff\xfe", "UTF-8"),
            (b"[" * 100_000, "deep"),
            (b'{"line":"header","a":' + b'{"a":' * 80 + b"1" + b"}" * 81, "deep"),
            (b"{" + b",".join(b'"%d":1' % n for n in range(10_001)) + b"}", "10,000 members"),
            (b'{"line":"header","line":"end"}', "twice"),
            (b'{"line":NaN}', "NaN"),
            (b'{"line":1e999}', "too large"),
            (b'{"line":' + b"9" * 5_000 + b"}", "digits"),
            (b'{"line":"\\ud800"}', "surrogate"),
            (b"null", "object"),
            (b"", "line"),
            (b"17", "object"),
            (b'{"line":"secret"}', "one of"),
            (b'{"line":"end","lines":{}}', "begins with"),
        ],
    )
    async def test_of_bytes_that_make_no_line(self, tenant: Tenant, raw: bytes, cause: str) -> None:
        check(await refuse(tenant, raw + b"\n"), cause, line=1)

    async def test_a_line_of_33_mebibytes(self, tenant: Tenant) -> None:
        check(await refuse(tenant, b'"' + b"x" * (33 * 1024 * 1024)), "bytes", line=1)

    async def test_bombs(self, tenant: Tenant) -> None:
        bomb = gzip.compress(b"\n" * (64 * 1024 * 1024))
        line_bomb = gzip.compress(b'{"a":"' + b"x" * (64 * 1024 * 1024))

        check(await refuse(tenant, bomb), "")
        check(await refuse(tenant, line_bomb), "unpacks to more")

    async def test_packed_files_that_are_damaged(self, tenant: Tenant, found: Lines) -> None:
        packed = gzip.compress(file_of(found))

        check(await refuse(tenant, packed[:-9]), "unpacked")
        check(await refuse(tenant, packed[:200] + b"\x00" * 50 + packed[250:]), "")
        check(await refuse(tenant, b"\x1f\x8b" + zlib.compress(b"x")), "unpacked")

    async def test_parts_that_are_too_large(self, tenant: Tenant) -> None:
        huge = list(parts(b"x" * (1024 * 1024 + 1), 2 * 1024 * 1024))

        refused = await failure(tenant.raw.upload("ImportConversations", huge))

        assert (refused.reason, refused.fields) == ("LIMIT_EXCEEDED", ("data",))

    async def test_lines_in_another_order(self, tenant: Tenant, found: Lines) -> None:
        last_but_one = found[-2]
        check(
            await refuse(tenant, file_of([*found[:2], last_but_one, *found[2:-2], found[-1]])), ""
        )
        check(await refuse(tenant, file_of([found[0], *found])), "cannot stand here", line=2)
        check(await refuse(tenant, file_of(found[1:])), "begins with", line=1)

    async def test_a_second_conversation_that_is_wrong(self, tenant: Tenant, found: Lines) -> None:
        data = file_of(found) + b'{"line":"header"}\n'

        check(await refuse(tenant, data), "missing", line=len(found) + 1)

    async def test_a_call_that_is_given_up_while_it_sends(
        self, tenant: Tenant, found: Lines
    ) -> None:
        stub = tenant.raw.upload("ImportConversations", _never_ending(file_of(found)))
        await asyncio.sleep(0)
        stub.cancel()

    async def test_a_call_that_is_given_up_while_it_is_stored(
        self, tenant: Tenant, postgres: LocalPostgres, found: Lines
    ) -> None:
        """Held up by somebody who has stored the same conversation and not committed yet."""
        [room] = {line["conversation_id"] for line in found[:1]}
        async with await psycopg.AsyncConnection.connect(postgres.admin_url) as held:
            await held.execute(
                "INSERT INTO annals.conversations (tenant_id, conversation_id) VALUES (%s, %s)",
                [tenant.tenant_id, room],
            )
            stub = tenant.raw.upload("ImportConversations", list(parts(file_of(found))))
            importing = asyncio.ensure_future(stub)
            await eventually(_imports(postgres), lambda count: count == 1)
            importing.cancel()
            await eventually(_imports(postgres), lambda count: count == 0)
            await held.rollback()


def _imports(postgres: LocalPostgres) -> Any:
    """Counts statements of imports that run."""

    async def act() -> int:
        query = """
        SELECT count(*) AS n FROM pg_stat_activity
        WHERE state = 'active' AND wait_event_type = 'Lock'
          AND query LIKE 'WITH stored AS (%INSERT INTO annals.conversations%'
        """
        count: int = run(postgres.admin_url, query)[0]["n"]
        return count

    return act


async def _never_ending(data: bytes) -> Any:
    for part in parts(data, 1_000):
        yield part
    await asyncio.Event().wait()


async def test_imported_events_are_indexed_and_watched(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    room = await small_conversation(tenant, "the heron waits by the weir")
    data = await exported(tenant, room)
    remove(postgres, tenant.tenant_id, room)
    await imported(tenant, data)

    found = await eventually(
        lambda: tenant.client.search.events("heron"), lambda answer: answer.hits
    )

    assert found.hits[0].event.conversation_id == room
    assert (await state(tenant.raw, room)).event_count == len(await listed(tenant, room)) == 1


NOT_IN_A_FILE = {
    "conversations": {"deleted_at", "cold_until_seq"},
    "events": {"cold_segment_id"},
    "observations": {"xid"},
    "observation_payloads": {"payload_bytes"},
    "memories": {
        *("other_embedding", "other_embedding_model", "other_embedding_version"),
        *("terms", "term_weights"),
    },
    "relationships": {
        "source_conversation_id", "target_conversation_id", "source_key", "target_key",
    },
}  # fmt: skip
"""Columns that follow from others, or have no meaning elsewhere."""
TABLES = {
    "conversations": Kind.CONVERSATION,
    "branches": Kind.BRANCH,
    "events": Kind.EVENT,
    "observations": Kind.OBSERVATION,
    "observation_payloads": Kind.OBSERVATION,
    "memories": Kind.MEMORY,
    "attachments": Kind.ATTACHMENT,
    "relationships": Kind.RELATIONSHIP,
    "append_requests": Kind.REQUEST,
    "usage_daily": Kind.USAGE,
}


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_in_the_file_or_left_out_on_purpose(
    postgres: LocalPostgres, table: str
) -> None:
    query = """
    SELECT column_name AS name FROM information_schema.columns
    WHERE table_schema = 'annals' AND table_name = %s
    """
    columns = {row["name"] for row in run(postgres.admin_url, query, [table])}
    known = {field.name for field in LINES[TABLES[table]]} | {"tenant_id", "conversation_id"}

    assert columns - known == NOT_IN_A_FILE.get(table, set())


async def test_words_in_cold_storage_are_in_the_file(
    postgres: LocalPostgres, tmp_path: Path
) -> None:
    settings = storage_settings(
        postgres, tmp_path / "data", cold_storage_url=(tmp_path / "cold").as_uri()
    )
    async with running_storage(settings) as storage, fresh_tenant(storage) as tenant:
        room = await rich_conversation(tenant)
        before = await exported(tenant, room)
        as_json = await exported(tenant, room, conversation_pb.EXPORT_FORMAT_JSON)
        moved = await call(tenant, "MoveToColdStorage", conversationId=room)
        assert moved.event_count

        assert _contents(await exported(tenant, room)) == _contents(before)
        cold_json = json.loads(await exported(tenant, room, conversation_pb.EXPORT_FORMAT_JSON))
        assert cold_json["events"] == json.loads(as_json)["events"]
        assert (await imported(tenant, await exported(tenant, room))).skipped_conversation_count


def _contents(data: bytes) -> Lines:
    """Without what moving changes of the conversation: its version and time."""
    return [line for line in lines(data) if line["line"] not in {"conversation", "end"}]
