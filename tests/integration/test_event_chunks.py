"""GetEventChunks."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from tests.support.appending import append, ids
from tests.support.raw import failure
from tests.support.storage import Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import error, system, tool_call, tool_result, user

SENTENCE = "The keeper counts herons in the reeds. "
"""Nine tokens."""


async def chunks_of(tenant: Tenant, event: pb.NewEvent, **fields: Any) -> Any:
    stored = await append(tenant.raw, "", event)
    request = pb.GetEventChunksRequest(event_id=ids(stored)[0], **fields)
    return await tenant.raw.call("GetEventChunks", request)


def joined(answer: pb.GetEventChunksResponse) -> str:
    text = ""
    for chunk in answer.chunks:
        assert chunk.end_char - chunk.start_char == len(chunk.text)
        text += chunk.text[len(text) - chunk.start_char :]
    return text


async def test_a_long_message_comes_in_chunks_of_four_thousand_tokens(tenant: Tenant) -> None:
    text = SENTENCE * 2_000

    answer = await chunks_of(tenant, user(text))

    assert [chunk.chunk_index for chunk in answer.chunks] == list(range(answer.chunk_count))
    assert answer.chunk_count == 5
    assert all(2_000 <= chunk.token_count <= 4_000 for chunk in answer.chunks[:-1])
    overlaps = [
        one.end_char - other.start_char
        for one, other in zip(answer.chunks, answer.chunks[1:], strict=False)
    ]
    assert all(0 < chars <= 200 * 6 for chars in overlaps)
    assert joined(answer) == text


async def test_a_megabyte_of_any_characters_comes_back(tenant: Tenant) -> None:
    text = ("Größe 日本語 🏳️‍🌈\n\n" * 40_000)[:300_000]

    answer = await chunks_of(tenant, user(text), chunk_tokens=50_000, overlap_tokens=100)

    assert joined(answer) == text


@pytest.mark.parametrize(
    ("event", "kind", "field"),
    [
        (user(SENTENCE * 50), "message", "content"),
        (system(SENTENCE * 50), "system", "content"),
        (tool_call("c", "t", {"text": SENTENCE * 50}), "tool_call", "input_json"),
        (error("failed", SENTENCE * 50), "error", "error_message"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_the_event_comes_without_its_text(
    tenant: Tenant, event: pb.NewEvent, kind: str, field: str
) -> None:
    answer = await chunks_of(tenant, event, chunk_tokens=100)

    assert answer.event.WhichOneof("body") == kind
    assert getattr(getattr(answer.event, kind), field) == ""
    assert joined(answer) == getattr(getattr(event, kind), field)
    assert answer.event.token_count > 400


async def test_a_tool_result_is_cut_too(tenant: Tenant) -> None:
    stored = await append(
        tenant.raw, "", tool_call("c", "t"), tool_result("c", SENTENCE * 50, is_error=True)
    )
    request = pb.GetEventChunksRequest(event_id=ids(stored)[1], chunk_tokens=100)

    answer = await tenant.raw.call("GetEventChunks", request)

    assert joined(answer) == SENTENCE * 50
    assert (answer.event.tool_result.result, answer.event.tool_result.is_error) == ("", True)


async def test_chunks_in_the_middle_are_those_of_the_whole(tenant: Tenant) -> None:
    stored = await append(tenant.raw, "", user(SENTENCE * 100))
    fields: dict[str, Any] = {"event_id": ids(stored)[0], "chunk_tokens": 100}
    whole = await tenant.raw.call("GetEventChunks", pb.GetEventChunksRequest(**fields))

    some = await tenant.raw.call(
        "GetEventChunks", pb.GetEventChunksRequest(**fields, chunk_index=3, limit=2)
    )

    assert list(some.chunks) == list(whole.chunks)[3:5]
    assert some.chunk_count == whole.chunk_count


@pytest.mark.parametrize(("text", "count"), [("", 0), ("hi", 1)])
async def test_a_short_one(tenant: Tenant, text: str, count: int) -> None:
    answer = await chunks_of(tenant, user(text))

    assert (answer.chunk_count, len(answer.chunks), joined(answer)) == (count, count, text)


async def test_behind_the_last_chunk_there_is_none(tenant: Tenant) -> None:
    answer = await chunks_of(tenant, user("hi"), chunk_index=2**31 - 1)

    assert (answer.chunk_count, list(answer.chunks)) == (1, [])


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"event_id": ""}, "event_id"),
        ({"chunk_tokens": 99}, "chunk_tokens"),
        ({"chunk_tokens": -1}, "chunk_tokens"),
        ({"chunk_tokens": 100_001}, "chunk_tokens"),
        ({"overlap_tokens": -1}, "overlap_tokens"),
        ({"overlap_tokens": 2_000}, "overlap_tokens"),
        ({"chunk_tokens": 100, "overlap_tokens": 50}, "overlap_tokens"),
        ({"chunk_index": -1}, "chunk_index"),
        ({"limit": -1}, "limit"),
        ({"limit": 1_001}, "limit"),
    ],
    ids=str,
)
async def test_malformed_fields_are_named(
    tenant: Tenant, fields: dict[str, Any], field: str
) -> None:
    request = pb.GetEventChunksRequest(**{"event_id": str(uuid4()), **fields})

    refused = await failure(tenant.raw.call("GetEventChunks", request))

    assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))


async def test_of_a_missing_or_deleted_event_is_not_found(tenant: Tenant) -> None:
    stored = await append(tenant.raw, "", user("hi"))
    await tenant.raw.call("DeleteEvent", pb.DeleteEventRequest(event_id=ids(stored)[0]))

    for event_id in (ids(stored)[0], str(uuid4())):
        request = pb.GetEventChunksRequest(event_id=event_id)
        refused = await failure(tenant.raw.call("GetEventChunks", request))
        assert refused.metadata == (("id", event_id), ("resource", "event"))
