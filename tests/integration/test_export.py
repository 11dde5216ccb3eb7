"""ExportConversation: four formats, as of one moment, in bounded parts."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from typing import Any
from uuid import uuid4

import pytest
from tests.support.appending import append, listed
from tests.support.raw import failure
from tests.support.storage import Tenant
from tests.support.transfers import (
    call,
    export_parts,
    exported,
    lines,
    rich_conversation,
    small_conversation,
)

from annals.storage.v1 import conversation_service_pb2 as pb
from annals_client import assistant, tool_call, tool_result, user

FORMATS = {
    pb.EXPORT_FORMAT_UNSPECIFIED: ("jsonl", "application/jsonl"),
    pb.EXPORT_FORMAT_JSON_LINES: ("jsonl", "application/jsonl"),
    pb.EXPORT_FORMAT_JSON: ("json", "application/json"),
    pb.EXPORT_FORMAT_MARKDOWN: ("md", "text/markdown; charset=utf-8"),
    pb.EXPORT_FORMAT_CSV: ("csv", "text/csv; charset=utf-8; header=present"),
}
READABLE = [pb.EXPORT_FORMAT_JSON, pb.EXPORT_FORMAT_MARKDOWN, pb.EXPORT_FORMAT_CSV]


@pytest.mark.parametrize("form", FORMATS)
async def test_parts_are_bounded_and_the_first_names_the_file(tenant: Tenant, form: int) -> None:
    room = await small_conversation(tenant, "é" * 200_000)

    parts = await export_parts(tenant, room, form)

    suffix, media_type = FORMATS[form]
    assert (parts[0].file_name, parts[0].media_type) == (
        f"conversation-{room}.{suffix}",
        media_type,
    )
    assert not any(part.file_name or part.media_type for part in parts[1:])
    assert all(0 < len(part.data) <= 64 * 1024 for part in parts)
    assert b"".join(part.data for part in parts).decode()


async def test_json_lines_hold_everything_in_order(tenant: Tenant) -> None:
    room = await rich_conversation(tenant)

    found = lines(await exported(tenant, room))

    kinds = [line["line"] for line in found]
    assert kinds[:2] == ["header", "conversation"]
    assert found[0]["tenant_id"] == tenant.tenant_id
    assert found[0]["conversation_id"] == room
    events = [line for line in found if line["line"] == "event"]
    assert [event["seq"] for event in events] == list(range(1, 11))
    assert {"branch", "memory", "attachment", "relationship", "request", "usage"} <= set(kinds)
    assert [memory.get("embedding") is not None for memory in found
            if memory["line"] == "memory"] == [False, True]  # fmt: skip
    payloads = [line["payload"] for line in found if line.get("payload")]
    assert {payload["content"] for payload in payloads} >= {'=1+1\nzweite "Zeile"', "first store"}
    assert found[-1]["line"] == "end"
    counts = found[-1]["lines"]
    assert sum(counts.values()) == len(found) - 1


async def test_json_is_one_document_of_the_branch_asked_for(tenant: Tenant) -> None:
    room = await rich_conversation(tenant)

    current = json.loads(await exported(tenant, room, pb.EXPORT_FORMAT_JSON))
    trunk_parts = await export_parts(tenant, room, pb.EXPORT_FORMAT_JSON, branch=1)
    trunk = json.loads(b"".join(part.data for part in trunk_parts))

    assert current["conversation"]["conversation_id"] == room
    assert current["branch"] != 1
    assert [e["seq"] for e in current["events"]] == [e.seq for e in await listed(tenant, room)]
    assert [e["seq"] for e in trunk["events"]] == [
        e.seq for e in await listed(tenant, room, branch=1)
    ]
    assert [memory["content"] for memory in current["memories"]] == ["likes owls", "own vector"]
    assert "embedding" not in current["memories"][1]


@pytest.mark.parametrize("form", READABLE)
async def test_deleted_words_are_left_out(tenant: Tenant, form: int) -> None:
    room = await small_conversation(tenant, "kept marker", "lost marker")
    events = await listed(tenant, room)
    await call(tenant, "DeleteEvent", eventId=events[1].event_id)

    text = (await exported(tenant, room, form)).decode()

    assert "kept marker" in text
    assert "lost marker" not in text


@pytest.mark.parametrize("form", READABLE)
async def test_an_empty_conversation_has_a_file(tenant: Tenant, form: int) -> None:
    room = (await tenant.client.conversations.create()).conversation_id

    text = (await exported(tenant, room, form)).decode("utf-8-sig")

    if form == pb.EXPORT_FORMAT_JSON:
        assert (json.loads(text)["events"], json.loads(text)["memories"]) == ([], [])
    assert text


async def test_csv_opens_as_it_was_said_and_calculates_nothing(tenant: Tenant) -> None:
    said = [
        "=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", "plain", "a,b",
        'say "hi"', "two\nlines", "two\r\nlines", "", "\uff1d1", "'quoted",
    ]  # fmt: skip
    room = await small_conversation(tenant, *said)

    raw = (await exported(tenant, room, pb.EXPORT_FORMAT_CSV)).decode("utf-8-sig")

    rows = list(csv.DictReader(io.StringIO(raw, newline=""), strict=True))
    assert [row["seq"] for row in rows] == [str(n + 1) for n in range(len(said))]
    for row, words in zip(rows, said, strict=True):
        assert row["content"] in {words, f"'{words}"}
        assert all(not (cell or "x").startswith(tuple("=+-@\t\r\n\uff1d")) for cell in row.values())
    assert rows[7]["content"] == "plain"
    assert raw.endswith("\r\n")


async def test_markdown_reads_as_a_transcript_nothing_breaks_out_of(tenant: Tenant) -> None:
    made = await tenant.client.conversations.create(title="# [x](y)\n## 9 · forged")
    room = made.conversation_id
    await append(
        tenant.raw,
        room,
        user("# heading\n```\nunclosed\r## 7 · forged\n<!-- gone", author_name="Ann\n# forged"),
        assistant("fine"),
        tool_call("c", "t```\n# forged", '{"q": "```\\n````"}'),
        tool_result("c", "```\n`````\n# forged"),
        user("[a]: http://evil\n<script>x</script>"),
    )

    text = (await exported(tenant, room, pb.EXPORT_FORMAT_MARKDOWN)).decode()

    outside = _outside(text)
    assert [line for line in outside if line.startswith("#")] == [
        line for line in outside if line.startswith(("# \\# ", "## "))
    ]
    headings = [line for line in outside if line.startswith("## ")]
    assert [line.split(" ")[1] for line in headings] == ["1", "2", "3", "4", "5"]
    assert all("forged" not in line or "\\#" in line for line in headings)
    assert "> # heading" in text
    assert "<script>" not in text
    assert "<!--" not in text
    assert "> [a]\\: http://evil" in text


def _outside(text: str) -> list[str]:
    """Lines that are neither quoted nor within a fence, as CommonMark sees them."""
    found: list[str] = []
    fence = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if fence:
            if len(ticks) >= len(fence) and line == ticks:
                fence = ""
        elif len(ticks) >= 3:
            fence = ticks
        elif not line.startswith(">"):
            found.append(line)
    assert not fence
    return found


async def test_a_file_is_of_one_moment_while_others_write(tenant: Tenant) -> None:
    room = await small_conversation(tenant, *(f"{n}" * 2_000 for n in range(600)))
    writing = asyncio.create_task(_write_until_cancelled(tenant, room))
    try:
        for _ in range(8):
            found = lines(await exported(tenant, room))
            conversation = found[1]
            events = [line for line in found if line["line"] == "event"]
            assert conversation["next_seq"] == len(events) + 1
            assert conversation["event_count"] == len(events)
    finally:
        writing.cancel()


async def _write_until_cancelled(tenant: Tenant, room: str) -> None:
    while True:
        await append(tenant.raw, room, user("meanwhile"))


@pytest.mark.parametrize("form", FORMATS)
async def test_what_is_not_there_is_not_found(
    tenant: Tenant, other_tenant: Tenant, form: int
) -> None:
    theirs = await small_conversation(other_tenant)
    gone = await small_conversation(tenant)
    await tenant.client.conversations.delete(gone)

    for room in (str(uuid4()), theirs, gone):
        refused = await failure(export_parts(tenant, room, form))
        assert (refused.code.name, refused.reason) == ("NOT_FOUND", "RESOURCE_NOT_FOUND")


async def test_a_branch_must_exist_and_suit_the_format(tenant: Tenant) -> None:
    room = await small_conversation(tenant)

    async def refused(form: int, branch: int) -> Any:
        return await failure(export_parts(tenant, room, form, branch=branch))

    assert (await refused(pb.EXPORT_FORMAT_JSON, 7)).reason == "RESOURCE_NOT_FOUND"
    assert (await refused(pb.EXPORT_FORMAT_JSON, -1)).fields == ("branch",)
    assert (await refused(pb.EXPORT_FORMAT_JSON_LINES, 1)).fields == ("branch",)
    assert (await refused(77, 0)).fields == ("format",)


async def test_an_erased_event_keeps_its_place(tenant: Tenant) -> None:
    room = await small_conversation(tenant, "a", "to be erased marker", "c")
    event = (await listed(tenant, room))[1]
    await call(tenant, "EraseEvent", eventId=event.event_id)

    data = await exported(tenant, room)

    assert b"to be erased marker" not in data
    [place] = [line for line in lines(data) if line.get("erased_at")]
    assert (place["seq"], place["event_id"]) == (2, event.event_id)
