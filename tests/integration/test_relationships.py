"""RelationshipService: what may refer to what, labels, attachments."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.struct_pb2 import Struct
from tests.support.appending import append, empty_conversation, ids
from tests.support.raw import RpcFailedError, failure
from tests.support.storage import Tenant

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import relationship_service_pb2 as pb
from annals_client import user

ACYCLIC = ["PART_OF", "DEPENDS_ON", "SUPERSEDES"]
BETWEEN_CONVERSATIONS = ["FOLLOW_UP", "RELATED", "DUPLICATE"]


def node(kind: str, node_id: str) -> pb.Node:
    return pb.Node(kind=pb.NodeKind.Value(f"NODE_KIND_{kind}"), id=node_id)


def number_of(kind: str) -> Any:
    return pb.RelationshipType.Value(f"RELATIONSHIP_TYPE_{kind}")


async def relate(
    tenant: Tenant, kind: str, source: pb.Node, target: pb.Node, **fields: Any
) -> pb.Relationship:
    relationship = pb.Relationship(type=number_of(kind), source=source, target=target, **fields)
    request = pb.CreateRelationshipRequest(relationship=relationship)
    created: pb.Relationship = (await tenant.raw.call("CreateRelationship", request)).relationship
    return created


async def related(tenant: Tenant, to: pb.Node, **fields: Any) -> list[pb.Relationship]:
    request = pb.ListRelationshipsRequest(node=to, **fields)
    return list((await tenant.raw.call("ListRelationships", request)).relationships)


async def conversation(tenant: Tenant) -> pb.Node:
    return node("CONVERSATION", await empty_conversation(tenant))


async def event_of(tenant: Tenant) -> tuple[pb.Node, pb.Node]:
    """An event and its conversation."""
    stored = await append(tenant.raw, "", user("hi"))
    return node("EVENT", ids(stored)[0]), node("CONVERSATION", stored.conversation_id)


async def attach(
    tenant: Tenant, conversation_id: str, event_id: str = "", **fields: Any
) -> pb.Attachment:
    attachment = pb.Attachment(conversation_id=conversation_id, **{"uri": "s3://b/k", **fields})
    request = pb.CreateAttachmentRequest(attachment=attachment, event_id=event_id)
    attached: pb.Attachment = (await tenant.raw.call("CreateAttachment", request)).attachment
    return attached


def struct(**values: Any) -> Struct:
    made = Struct()
    made.update(values)
    return made


class TestCreate:
    async def test_joins_two_ends(self, tenant: Tenant) -> None:
        event, room = await event_of(tenant)

        made = await relate(tenant, "PART_OF", event, room, score=0.25, metadata=struct(a=1))

        assert (made.source, made.target, made.score) == (event, room, 0.25)
        assert made.label == "is a message of"
        assert dict(made.metadata) == {"a": 1}
        assert await related(tenant, room) == [made] == await related(tenant, event)

    async def test_again_updates_score_and_metadata(self, tenant: Tenant) -> None:
        event, room = await event_of(tenant)
        first = await relate(tenant, "REFERS_TO", event, room, score=0.5, metadata=struct(a=1))

        again = await relate(tenant, "REFERS_TO", event, room)

        assert again.relationship_id == first.relationship_id
        assert again.create_time == first.create_time
        assert not again.HasField("score")
        assert dict(again.metadata) == {}
        assert len(await related(tenant, event)) == 1

    async def test_an_external_end_is_taken_at_its_word(self, tenant: Tenant) -> None:
        room = await conversation(tenant)
        topic = node("EXTERNAL", "\U0001f3f3" * 2_048)

        made = await relate(tenant, "REFERS_TO", room, topic)

        assert (made.label, made.target) == ("discusses", topic)
        assert await related(tenant, topic) == [made]

    @pytest.mark.parametrize("kind", ["EVENT", "CONVERSATION", "MEMORY", "ATTACHMENT"])
    @pytest.mark.parametrize("end", ["source", "target"])
    async def test_other_ends_must_exist(self, tenant: Tenant, kind: str, end: str) -> None:
        ends = {"source": await conversation(tenant), "target": await conversation(tenant)}
        ends[end] = node(kind, str(uuid4()))

        refused = await failure(relate(tenant, "REFERS_TO", ends["source"], ends["target"]))

        assert (refused.code.name, refused.reason) == ("NOT_FOUND", "RESOURCE_NOT_FOUND")
        assert dict(refused.metadata) == {"resource": kind.lower(), "id": ends[end].id}

    async def test_ends_of_others_do_not_exist(self, tenant: Tenant, other_tenant: Tenant) -> None:
        theirs = [*await event_of(other_tenant)]
        room = await conversation(tenant)

        for end in theirs:
            refused = await failure(relate(tenant, "REFERS_TO", room, end))
            assert refused.reason == "RESOURCE_NOT_FOUND"
            assert await related(tenant, end) == []

    async def test_ends_in_deleted_conversations_do_not_exist(self, tenant: Tenant) -> None:
        event, room = await event_of(tenant)
        other = await conversation(tenant)
        made = await relate(tenant, "REFERS_TO", other, event)
        delete = conversation_pb.DeleteConversationRequest(conversation_id=room.id)
        await tenant.raw.call("DeleteConversation", delete)

        refused = await failure(relate(tenant, "CORRECTS", other, event))

        assert refused.reason == "RESOURCE_NOT_FOUND"
        assert await related(tenant, other) == []
        restore = conversation_pb.RestoreConversationRequest(conversation_id=room.id)
        await tenant.raw.call("RestoreConversation", restore)
        assert await related(tenant, other) == [made]

    async def test_nothing_relates_to_itself(self, tenant: Tenant) -> None:
        room = await conversation(tenant)
        upper = node("CONVERSATION", room.id.upper())

        refused = await failure(relate(tenant, "RELATED", room, upper))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("relationship.target.id",))

    @pytest.mark.parametrize("kind", BETWEEN_CONVERSATIONS)
    @pytest.mark.parametrize("end", ["source", "target"])
    async def test_some_types_are_between_conversations(
        self, tenant: Tenant, kind: str, end: str
    ) -> None:
        event, room = await event_of(tenant)
        ends = (event, room) if end == "source" else (room, event)

        refused = await failure(relate(tenant, kind, *ends))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (f"relationship.{end}.kind",))
        assert (await relate(tenant, kind, room, await conversation(tenant))).source == room

    async def test_only_attachments_are_embedded(self, tenant: Tenant) -> None:
        event, room = await event_of(tenant)

        refused = await failure(relate(tenant, "EMBEDS", event, room))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("relationship.target.kind",))

    @pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), float("inf")])
    async def test_a_score_lies_between_0_and_1(self, tenant: Tenant, score: float) -> None:
        one, other = await conversation(tenant), await conversation(tenant)

        refused = await failure(relate(tenant, "RELATED", one, other, score=score))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("relationship.score",))


class TestCycles:
    @pytest.mark.parametrize("kind", ACYCLIC)
    async def test_are_refused_over_any_distance(self, tenant: Tenant, kind: str) -> None:
        chain = [node("EXTERNAL", f"step {number}") for number in range(5)]
        for source, target in pairwise(chain):
            await relate(tenant, kind, source, target)

        refused = await failure(relate(tenant, kind, chain[-1], chain[0]))

        assert (refused.code.name, refused.reason) == ("FAILED_PRECONDITION", "RELATIONSHIP_CYCLE")
        assert dict(refused.metadata) == {"type": kind, "source": "step 4"}
        assert len(await related(tenant, chain[0])) == 1

    async def test_are_cycles_of_one_type(self, tenant: Tenant) -> None:
        one, other = node("EXTERNAL", "one"), node("EXTERNAL", "other")
        await relate(tenant, "PART_OF", one, other)

        await relate(tenant, "DEPENDS_ON", other, one)
        await relate(tenant, "PART_OF", one, other)

    async def test_of_other_types_are_fine(self, tenant: Tenant) -> None:
        one, other = node("EXTERNAL", "one"), node("EXTERNAL", "other")

        await relate(tenant, "REFERS_TO", one, other)
        await relate(tenant, "REFERS_TO", other, one)

    async def test_cannot_be_closed_by_two_at_once(self, tenant: Tenant) -> None:
        for attempt in range(20):
            ring = [node("EXTERNAL", f"{attempt} {number}") for number in range(4)]
            arcs = zip(ring, [*ring[1:], ring[0]], strict=True)
            done = await asyncio.gather(
                *(relate(tenant, "DEPENDS_ON", *arc) for arc in arcs), return_exceptions=True
            )
            refused = [error for error in done if isinstance(error, RpcFailedError)]
            assert [error.failure.reason for error in refused] == ["RELATIONSHIP_CYCLE"]


class TestList:
    async def test_filters_by_end_and_type(self, tenant: Tenant) -> None:
        room, source, target = [await conversation(tenant) for _ in range(3)]
        incoming = await relate(tenant, "RELATED", source, room)
        outgoing = await relate(tenant, "FOLLOW_UP", room, target)

        assert await related(tenant, room) == [outgoing, incoming]
        assert await related(tenant, room, end=pb.RELATIONSHIP_END_EITHER) == [outgoing, incoming]
        assert await related(tenant, room, end=pb.RELATIONSHIP_END_SOURCE) == [outgoing]
        assert await related(tenant, room, end=pb.RELATIONSHIP_END_TARGET) == [incoming]
        assert await related(tenant, room, types=[number_of("RELATED")]) == [incoming]
        assert await related(tenant, room, types=[number_of("SETTLES")]) == []

    async def test_pages_hold_everything_once(self, tenant: Tenant) -> None:
        room = await conversation(tenant)
        made = [
            await relate(tenant, "REFERS_TO", room, node("EXTERNAL", str(number)))
            for number in range(5)
        ]
        request = pb.ListRelationshipsRequest(node=room, page_size=2)
        found = []
        while True:
            page = await tenant.raw.call("ListRelationships", request)
            found += page.relationships
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        assert found == made[::-1]

    async def test_labels_name_every_type_both_ways(self, tenant: Tenant) -> None:
        answer = await tenant.raw.call("ListRelationshipTypes", pb.ListRelationshipTypesRequest())

        by_type = {label.type: label for label in reversed(answer.labels)}
        assert set(by_type) == set(pb.RelationshipType.values()) - {0}
        assert all(label.label and label.inverse_label for label in answer.labels)
        message = by_type[number_of("PART_OF")]
        assert (message.source_kind, message.target_kind) == (1, 2)
        assert message.inverse_label == "contains message"


class TestDelete:
    async def test_removes_it(self, tenant: Tenant) -> None:
        room = await conversation(tenant)
        made = await relate(tenant, "REFERS_TO", room, node("EXTERNAL", "x"))
        request = pb.DeleteRelationshipRequest(relationship_id=made.relationship_id)

        await tenant.raw.call("DeleteRelationship", request)

        assert await related(tenant, room) == []
        refused = await failure(tenant.raw.call("DeleteRelationship", request))
        assert refused.reason == "RESOURCE_NOT_FOUND"

    async def test_leaves_those_of_others(self, tenant: Tenant, other_tenant: Tenant) -> None:
        room = await conversation(other_tenant)
        made = await relate(other_tenant, "REFERS_TO", room, node("EXTERNAL", "x"))
        request = pb.DeleteRelationshipRequest(relationship_id=made.relationship_id)

        refused = await failure(tenant.raw.call("DeleteRelationship", request))

        assert refused.reason == "RESOURCE_NOT_FOUND"
        assert await related(other_tenant, room) == [made]


class TestAttachments:
    async def test_are_embedded_by_their_event(self, tenant: Tenant) -> None:
        event, room = await event_of(tenant)

        made = await attach(
            tenant,
            room.id,
            event.id,
            media_type="image/png",
            file_name="a.png",
            size_bytes=7,
            sha256="AB" * 32,
            metadata=struct(a=1),
        )

        assert (made.uri, made.media_type, made.file_name) == ("s3://b/k", "image/png", "a.png")
        assert (made.size_bytes, made.sha256) == (7, "ab" * 32)
        [embeds] = await related(tenant, node("ATTACHMENT", made.attachment_id))
        assert (embeds.type, embeds.source) == (number_of("EMBEDS"), event)
        get = pb.GetAttachmentRequest(attachment_id=made.attachment_id)
        assert (await tenant.raw.call("GetAttachment", get)).attachment == made

    async def test_stored_again_are_the_same(self, tenant: Tenant) -> None:
        event, room = await event_of(tenant)
        attachment_id = str(uuid4())
        first = await attach(tenant, room.id, event.id, attachment_id=attachment_id)

        assert await attach(tenant, room.id, event.id, attachment_id=attachment_id) == first
        refused = await failure(attach(tenant, room.id, attachment_id=attachment_id, uri="other"))
        assert (refused.code.name, refused.reason) == ("ALREADY_EXISTS", "RESOURCE_ALREADY_EXISTS")

    async def test_belong_to_the_conversation_of_their_event(self, tenant: Tenant) -> None:
        event, _ = await event_of(tenant)
        room = await conversation(tenant)

        refused = await failure(attach(tenant, room.id, event.id))

        assert (refused.reason, dict(refused.metadata)["resource"]) == (
            "RESOURCE_NOT_FOUND",
            "event",
        )
        listed = await tenant.raw.call(
            "ListAttachments", pb.ListAttachmentsRequest(conversation_id=room.id)
        )
        assert list(listed.attachments) == []

    async def test_of_others_do_not_exist(self, tenant: Tenant, other_tenant: Tenant) -> None:
        room = await conversation(other_tenant)
        made = await attach(other_tenant, room.id)

        get = pb.GetAttachmentRequest(attachment_id=made.attachment_id)
        assert (await failure(tenant.raw.call("GetAttachment", get))).reason == "RESOURCE_NOT_FOUND"
        assert (await failure(attach(tenant, room.id))).reason == "RESOURCE_NOT_FOUND"
        request = pb.ListAttachmentsRequest(conversation_id=room.id)
        assert list((await tenant.raw.call("ListAttachments", request)).attachments) == []

    async def test_pages_run_from_the_newest(self, tenant: Tenant) -> None:
        room = await conversation(tenant)
        made = [await attach(tenant, room.id, file_name=str(number)) for number in range(5)]
        request = pb.ListAttachmentsRequest(conversation_id=room.id, page_size=2)
        found = []
        while True:
            page = await tenant.raw.call("ListAttachments", request)
            found += page.attachments
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        assert found == made[::-1]

    @pytest.mark.parametrize(
        ("field", "value"),
        [("sha256", "ab"), ("sha256", "g" * 64), ("size_bytes", -1), ("uri", "")],
    )
    async def test_must_be_possible(self, tenant: Tenant, field: str, value: Any) -> None:
        room = await conversation(tenant)

        refused = await failure(attach(tenant, room.id, **{field: value}))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (f"attachment.{field}",))
