"""A marker in every text the API takes, and a search for it in everything stored."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from tests.support.changing import edit, store
from tests.support.scratch import run
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import lifecycle_service_pb2 as lifecycle_pb
from annals.storage.v1 import memory_service_pb2 as memory_pb
from annals.storage.v1 import provider_service_pb2 as provider_pb
from annals.storage.v1 import relationship_service_pb2 as relationship_pb
from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import search_service_pb2 as search_pb
from annals.storage.v1 import tenant_service_pb2 as tenant_pb
from annals_local.postgres import LocalPostgres


@dataclass(frozen=True, slots=True)
class Planted:
    """A conversation full of a marker, and two others' places where it must not matter."""

    conversation_id: str
    event_ids: list[str]
    marker: str
    user_id: str


def new_marker() -> str:
    """A word that is nowhere else."""
    return f"zyx{uuid4().hex}"


async def plant(tenant: Tenant, marker: str) -> Planted:
    """Put the marker into every text field of a conversation and what belongs to it."""
    conversation = await _conversation(tenant, marker)
    room = conversation.conversation_id
    events = await _events(tenant, room, marker)
    turn = await store(
        tenant.raw, room, f"turn-{marker}", _message(f"said {marker}", marker, "turn-1")
    )
    again = await store(
        tenant.raw, room, f"turn-{marker}", _message(f"said again {marker}", marker, "turn-2")
    )
    change = event_pb.NewEvent(message=_body(f"corrected {marker}", marker))
    await edit(tenant.raw, events[0], change, "body")
    await _relations(tenant, room, events, marker)
    await _memory(tenant, room, marker)
    await _provider_log(tenant, room, marker)
    await _branch(tenant, room, events, marker)
    await _search(tenant, room, marker)
    ends = conversation_pb.EndConversationRequest(conversation_id=room, summary=f"sum {marker}")
    await tenant.raw.call("EndConversation", ends)
    await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
    ids = [*events, turn.event.event_id, again.event.event_id]
    return Planted(room, list(dict.fromkeys(ids)), marker, f"user-{marker}")


async def move_to_cold(tenant: Tenant, conversation_id: str, until_seq: int = 0) -> Any:
    """Move the words of a conversation to cold storage."""
    request = lifecycle_pb.MoveToColdStorageRequest(
        conversation_id=conversation_id, until_seq=until_seq
    )
    return await tenant.raw.call("MoveToColdStorage", request)


def tables_with(postgres: LocalPostgres, marker: str) -> set[str]:
    """Every table of the schema with a row whose text, or bytes, hold the marker."""
    names = run(postgres.admin_url, "SELECT tablename FROM pg_tables WHERE schemaname = 'annals'")
    query = (
        "SELECT count(*) AS found FROM annals.{} AS row "
        "WHERE strpos(row::text, %(text)s) > 0 OR strpos(row::text, %(bytes)s) > 0"
    )
    params = {"text": marker, "bytes": marker.encode().hex()}
    return {
        row["tablename"]
        for row in names
        if run(postgres.admin_url, query.format(row["tablename"]), params)[0]["found"]
    }


def objects_with(folder: Path, marker: str) -> list[str]:
    """Every file below a folder of cold storage that holds the marker."""
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and marker.encode() in _unpacked(path.read_bytes())
    ]


def _unpacked(data: bytes) -> bytes:
    """As much as can be read: other tests damage objects."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data)
    except zlib.error:
        return data


async def points_of(storage: RunningStorage, tenant: Tenant) -> int:
    """Every point of a tenant in the engine."""
    return await storage.adapters.vectors.count_points(UUID(tenant.tenant_id))


def _body(content: str, marker: str) -> res.MessageBody:
    return res.MessageBody(role=res.ROLE_USER, content=content, author_name=f"author {marker}")


def _message(content: str, marker: str, key: str) -> event_pb.NewEvent:
    event = event_pb.NewEvent(
        message=_body(content, marker),
        idempotency_key=f"{key}-{marker}",
        model=f"model-{marker}",
        provider_response_id=f"response-{key}-{marker}",
        usage=res.Usage(input_tokens=3, output_tokens=4),
    )
    event.metadata.update({f"key {marker}": [f"value {marker}"]})
    return event


async def _conversation(tenant: Tenant, marker: str) -> res.Conversation:
    wanted = res.Agent(display_name="planted", provider_logs_enabled=True)
    agent = (await tenant.raw.call("CreateAgent", tenant_pb.CreateAgentRequest(agent=wanted))).agent
    context = res.ClientContext(
        page_url=f"https://example.org/{marker}",
        referrer=f"https://example.org/{marker}",
        user_agent=marker,
        locale="en",
        timezone="UTC",
    )
    context.custom.update({marker: marker})
    conversation = res.Conversation(
        agent_id=agent.agent_id,
        user_id=f"user-{marker}",
        title=f"title {marker}",
        client_context=context,
        host_conversation_id=f"host-{marker}",
        org_id=f"org-{marker}",
    )
    conversation.metadata.update({marker: marker})
    made = await tenant.raw.call(
        "CreateConversation", conversation_pb.CreateConversationRequest(conversation=conversation)
    )
    found: res.Conversation = made.conversation
    return found


async def _events(tenant: Tenant, room: str, marker: str) -> list[str]:
    call_id = f"call-{marker}"
    kinds = [
        _message(f"first {marker}", marker, "first"),
        event_pb.NewEvent(
            tool_call=res.ToolCallBody(
                tool_call_id=call_id, tool_name=f"tool-{marker}", input_json=f'{{"q": "{marker}"}}'
            )
        ),
        event_pb.NewEvent(
            tool_result=res.ToolResultBody(tool_call_id=call_id, result=f"result {marker}")
        ),
        event_pb.NewEvent(system=res.SystemBody(content=f"system {marker}")),
        event_pb.NewEvent(
            error=res.ErrorBody(error_type=f"type {marker}", error_message=f"error {marker}")
        ),
    ]
    request = event_pb.AppendEventsRequest(
        conversation_id=room, events=kinds, request_id=str(uuid4())
    )
    stored = await tenant.raw.call("AppendEvents", request)
    return [event.event_id for event in stored.events]


async def _relations(tenant: Tenant, room: str, events: list[str], marker: str) -> None:
    relationship = relationship_pb.Relationship(
        type=relationship_pb.RELATIONSHIP_TYPE_REFERS_TO,
        source=relationship_pb.Node(kind=relationship_pb.NODE_KIND_EVENT, id=events[0]),
        target=relationship_pb.Node(
            kind=relationship_pb.NODE_KIND_EXTERNAL, id=f"https://example.org/{marker}"
        ),
    )
    relationship.metadata.update({marker: marker})
    await tenant.raw.call(
        "CreateRelationship", relationship_pb.CreateRelationshipRequest(relationship=relationship)
    )
    attachment = relationship_pb.Attachment(
        conversation_id=room,
        uri=f"https://example.org/{marker}",
        media_type="text/plain",
        file_name=f"{marker}.txt",
    )
    attachment.metadata.update({marker: marker})
    await tenant.raw.call(
        "CreateAttachment",
        relationship_pb.CreateAttachmentRequest(attachment=attachment, event_id=events[0]),
    )


async def _memory(tenant: Tenant, room: str, marker: str) -> None:
    memory = res.Memory(conversation_id=room, content=f"memory {marker}", tags=[f"tag-{marker}"])
    memory.metadata.update({marker: marker})
    await tenant.raw.call(
        "StoreMemory",
        memory_pb.StoreMemoryRequest(memory=memory, idempotency_key=f"memory-{marker}"),
    )


async def _provider_log(tenant: Tenant, room: str, marker: str) -> None:
    log = provider_pb.ProviderLog(
        conversation_id=room,
        provider="openai",
        model=marker,
        request_json=f'{{"q": "{marker}"}}',
        response_json=f'{{"a": "{marker}"}}',
    )
    await tenant.raw.call(
        "CreateProviderLog", provider_pb.CreateProviderLogRequest(provider_log=log)
    )


async def _branch(tenant: Tenant, room: str, events: list[str], marker: str) -> None:
    request = event_pb.CreateBranchRequest(
        conversation_id=room, event_id=events[1], display_name=f"branch {marker}"
    )
    await tenant.raw.call("CreateBranch", request)


async def _search(tenant: Tenant, room: str, marker: str) -> None:
    request = search_pb.SearchEventsRequest(query=f"where is {marker}")
    request.filter.conversation_ids.append(room)
    await tenant.raw.call("SearchEvents", request)
