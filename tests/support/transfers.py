"""Exports and imports, and a conversation with something of everything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

from google.protobuf.json_format import ParseDict
from tests.support.appending import append, empty_conversation, ids
from tests.support.messages import new
from tests.support.raw import methods
from tests.support.scratch import run
from tests.support.storage import Tenant

from annals.storage.v1 import conversation_service_pb2 as pb
from annals_client import assistant, error, system, tool_call, tool_result, user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.transfer import Digest, encode
from annals_storage.domain.transfer_lines import Kind

PART_BYTES = 60_000
TABLES = (
    "relationships", "attachments", "memories", "chunks", "append_requests", "usage_daily",
    "branches", "events", "outbox",
)  # fmt: skip


async def exported(tenant: Tenant, room: str, form: int = pb.EXPORT_FORMAT_JSON_LINES) -> bytes:
    """The whole file."""
    return b"".join([part.data for part in await export_parts(tenant, room, form)])


async def export_parts(tenant: Tenant, room: str, form: int, **fields: Any) -> list[Any]:
    request = pb.ExportConversationRequest(conversation_id=room, format=form, **fields)
    return [part async for part in tenant.raw.answers("ExportConversation", request)]


def parts(data: bytes, size: int = PART_BYTES) -> Iterator[pb.ImportConversationsRequest]:
    for begin in range(0, len(data), size):
        yield pb.ImportConversationsRequest(data=data[begin : begin + size])


async def imported(tenant: Tenant, data: bytes) -> pb.ImportConversationsResponse:
    response: pb.ImportConversationsResponse = await tenant.raw.upload(
        "ImportConversations", list(parts(data)), timeout_s=120
    )
    return response


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.decode().split("\n") if line]


def file_of(items: Iterable[dict[str, Any]], *, counted: bool = True) -> bytes:
    """A file of these lines, the end's counts set right and without a hash."""
    kept = [dict(item) for item in items]
    if counted and kept and kept[-1]["line"] == "end":
        counts: dict[str, int] = {}
        for item in kept[:-1]:
            counts[item["line"]] = counts.get(item["line"], 0) + 1
        kept[-1] = {"line": "end", "lines": counts}
    return "".join(f"{json.dumps(item, ensure_ascii=False)}\n" for item in kept).encode()


def sealed(items: Iterable[dict[str, Any]]) -> bytes:
    """A file of these lines as an export would end it: counts and hash set right."""
    *kept, _ = [dict(item) for item in items]
    digest, written = Digest(), []
    for item in kept:
        kind = Kind(item.pop("line"))
        written.append(encode(kind, item))
        digest.take(kind, written[-1])
    return "".join(f"{line}\n" for line in (*written, digest.end())).encode()


async def round_trip(tenant: Tenant, postgres: LocalPostgres, room: str) -> None:
    """Export, remove and import a conversation: its file stays the same to the byte."""
    before = await exported(tenant, room)
    assert sealed(lines(before)) == before
    remove(postgres, tenant.tenant_id, room)
    await imported(tenant, before)
    assert await exported(tenant, room) == before


def remove(postgres: LocalPostgres, tenant_id: str, room: str) -> None:
    """Take a conversation out, rows and all."""
    of_room = "SELECT event_id FROM annals.events WHERE conversation_id = %s"
    for table in ("observation_payloads", "observations"):
        run(
            postgres.admin_url,
            f"DELETE FROM annals.{table} WHERE tenant_id = %s AND event_id IN ({of_room})",
            [tenant_id, room],
        )
    for table in TABLES:
        column = "source_conversation_id" if table == "relationships" else "conversation_id"
        statement = f"DELETE FROM annals.{table} WHERE tenant_id = %s AND {column} = %s"
        run(postgres.admin_url, statement, [tenant_id, room])
    statement = "DELETE FROM annals.conversations WHERE tenant_id = %s AND conversation_id = %s"
    run(postgres.admin_url, statement, [tenant_id, room])


async def call(tenant: Tenant, name: str, **fields: Any) -> Any:
    """Call a method with a request in protobuf's JSON."""
    request = new(methods()[name].input_type)
    return await tenant.raw.call(name, ParseDict(fields, request))


async def rich_conversation(tenant: Tenant) -> str:
    """Turns, edits, deletions, an erasure, branches, memories, attachments, relationships."""
    agent = await tenant.client.agents.create("an agent")
    made = await tenant.client.conversations.create(
        agent_id=agent.agent_id,
        session_id="s",
        title="Ärger, mit «Kommas»\n",
        metadata={"n": 1e300},
    )
    room = made.conversation_id
    stored = await append(
        tenant.raw,
        room,
        user('=1+1\nzweite "Zeile"', author_name="Ann", metadata={"deep": [1, {"x": None}]}),
        assistant("answer", model="m", idempotency_key="k"),
        tool_call("c1", "search", '{"q": "```"}'),
        tool_result("c1", "found ````\nmore"),
        system("note <script>alert(1)</script>"),
        error("Timeout", "too late"),
        user("to be deleted"),
        user("to be erased"),
        request_id=str(uuid4()),
    )
    events = ids(stored)
    await call(
        tenant, "EditEvent", eventId=events[0],
        event={"message": {"role": "ROLE_USER", "content": "edited 🦉\u2028"}},
    )  # fmt: skip
    await call(
        tenant, "StoreTurn", conversationId=room, turnId="t1",
        event={"message": {"role": "ROLE_USER", "content": "first store"}},
    )  # fmt: skip
    await call(
        tenant, "StoreTurn", conversationId=room, turnId="t1",
        event={"message": {"role": "ROLE_USER", "content": "second store"},
               "usage": {"inputTokens": 5}},
    )  # fmt: skip
    await call(tenant, "DeleteEvent", eventId=events[6])
    await call(tenant, "CreateBranch", conversationId=room, eventId=events[1], displayName="b")
    await call(tenant, "RevertToEvent", conversationId=room, eventId=events[3])
    await append(tenant.raw, room, user("on the branch", parent_event_id=events[3]))
    await call(tenant, "CreateAttachment", attachment={
        "conversationId": room, "uri": "s3://bucket/a.png", "sizeBytes": "17",
    }, eventId=events[0])  # fmt: skip
    await call(tenant, "CreateRelationship", relationship={
        "type": "RELATIONSHIP_TYPE_REFERS_TO", "metadata": {"w": 0.5},
        "source": {"kind": "NODE_KIND_EVENT", "id": events[0]},
        "target": {"kind": "NODE_KIND_EXTERNAL", "id": "ticket:7"},
    })  # fmt: skip
    await _memories(tenant, room)
    return room


async def _memories(tenant: Tenant, room: str) -> None:
    dimensions = (await tenant.client.index.status()).embedding_dimensions
    memory = {"conversationId": room, "content": "likes owls", "tags": ["pets", "+1"]}
    await call(tenant, "StoreMemory", memory=memory)
    await call(
        tenant, "StoreMemory", memory={"conversationId": room, "content": "own vector"},
        embedding=[float(n % 7 - 3) for n in range(dimensions)], idempotencyKey="mk",
    )  # fmt: skip


async def small_conversation(tenant: Tenant, *contents: str) -> str:
    room = await empty_conversation(tenant)
    await append(tenant.raw, room, *(user(content) for content in contents or ("hello",)))
    return room
