"""RelationshipService."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from annals.storage.v1 import relationship_service_pb2 as pb
from annals.storage.v1 import relationship_service_pb2_grpc as pb_grpc
from annals_common.errors import FieldInvalidError
from annals_common.ids import uuid7
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.validation import (
    bounded,
    check_response_size,
    enum,
    enums,
    optional_uuid,
    page_size,
    require_text,
    require_uuid,
    struct,
    text,
)
from annals_storage.commands.relating import Relate
from annals_storage.domain.relationships import (
    LABELS,
    Attachment,
    NewAttachment,
    NewRelationship,
    Node,
    NodeKind,
    Relationship,
    RelationshipEnd,
    RelationshipQuery,
    RelationshipType,
)
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.output import timestamp_message
from annals_storage.ports.relationships import RelationshipStore

MAX_EXTERNAL_ID_CHARS = 2_048
MAX_URI_CHARS = 2_048
MAX_MEDIA_TYPE_CHARS = 255
MAX_FILE_NAME_CHARS = 500
MAX_METADATA_BYTES = 64 * 1024
MAX_SIZE_BYTES = 2**62
_SHA256_HEX = re.compile(r"[0-9a-fA-F]{64}")

TYPES: dict[int, RelationshipType] = {
    number: RelationshipType(name.removeprefix("RELATIONSHIP_TYPE_").lower())
    for name, number in pb.RelationshipType.items()
    if number
}
KINDS: dict[int, NodeKind] = {
    number: NodeKind(name.removeprefix("NODE_KIND_").lower())
    for name, number in pb.NodeKind.items()
    if number
}
ENDS: dict[int, RelationshipEnd] = {
    pb.RELATIONSHIP_END_UNSPECIFIED: RelationshipEnd.EITHER,
    pb.RELATIONSHIP_END_EITHER: RelationshipEnd.EITHER,
    pb.RELATIONSHIP_END_SOURCE: RelationshipEnd.SOURCE,
    pb.RELATIONSHIP_END_TARGET: RelationshipEnd.TARGET,
}
_TYPE_NUMBERS: Mapping[RelationshipType, Any] = {value: key for key, value in TYPES.items()}
_KIND_NUMBERS: Mapping[NodeKind | None, Any] = {
    None: pb.NODE_KIND_UNSPECIFIED,
    **{value: key for key, value in KINDS.items()},
}


class RelationshipHandler(pb_grpc.RelationshipServiceServicer):
    """Translates; what makes sense is in commands.relating."""

    def __init__(self, relationships: RelationshipStore) -> None:
        self._relationships = relationships
        self._relate = Relate(relationships)

    async def CreateRelationship(
        self, request: pb.CreateRelationshipRequest, context: Any
    ) -> pb.CreateRelationshipResponse:
        tenant_id = data_tenant("CreateRelationship")
        created = await self._relate(tenant_id, _new_relationship(request.relationship))
        return pb.CreateRelationshipResponse(relationship=_relationship_message(created))

    async def ListRelationships(
        self, request: pb.ListRelationshipsRequest, context: Any
    ) -> pb.ListRelationshipsResponse:
        tenant_id = data_tenant("ListRelationships")
        limit = page_size(request.page_size)
        found = await self._relationships.page(tenant_id, _query(request, tenant_id, limit + 1))
        page, has_more = cut_page(found, limit)
        response = pb.ListRelationshipsResponse(
            relationships=[_relationship_message(item) for item in page]
        )
        if has_more:
            cursor = encode_time_cursor(page[-1].created_at, page[-1].relationship_id)
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        check_response_size(response, "page_size")
        return response

    async def DeleteRelationship(
        self, request: pb.DeleteRelationshipRequest, context: Any
    ) -> pb.DeleteRelationshipResponse:
        tenant_id = data_tenant("DeleteRelationship")
        relationship_id = require_uuid(request.relationship_id, "relationship_id")
        await self._relationships.delete(tenant_id, relationship_id)
        return pb.DeleteRelationshipResponse()

    async def ListRelationshipTypes(
        self, request: pb.ListRelationshipTypesRequest, context: Any
    ) -> pb.ListRelationshipTypesResponse:
        data_tenant("ListRelationshipTypes")
        return pb.ListRelationshipTypesResponse(labels=_LABEL_MESSAGES)

    async def CreateAttachment(
        self, request: pb.CreateAttachmentRequest, context: Any
    ) -> pb.CreateAttachmentResponse:
        tenant_id = data_tenant("CreateAttachment")
        new = _new_attachment(request.attachment)
        event_id = optional_uuid(request.event_id, "event_id")
        attached = await self._relationships.attach(tenant_id, new, event_id=event_id)
        return pb.CreateAttachmentResponse(attachment=_attachment_message(attached))

    async def GetAttachment(
        self, request: pb.GetAttachmentRequest, context: Any
    ) -> pb.GetAttachmentResponse:
        tenant_id = data_tenant("GetAttachment")
        attachment_id = require_uuid(request.attachment_id, "attachment_id")
        found = await self._relationships.get_attachment(tenant_id, attachment_id)
        return pb.GetAttachmentResponse(attachment=_attachment_message(found))

    async def ListAttachments(
        self, request: pb.ListAttachmentsRequest, context: Any
    ) -> pb.ListAttachmentsResponse:
        tenant_id = data_tenant("ListAttachments")
        limit = page_size(request.page_size)
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        cursor = decode_time_cursor(decode_page_token(request, tenant_id, parts=2))
        found = await self._relationships.page_attachments(
            tenant_id, conversation_id, cursor=cursor, limit=limit + 1
        )
        page, has_more = cut_page(found, limit)
        response = pb.ListAttachmentsResponse(
            attachments=[_attachment_message(item) for item in page]
        )
        if has_more:
            last = encode_time_cursor(page[-1].created_at, page[-1].attachment_id)
            response.next_page_token = encode_page_token(request, tenant_id, last)
        check_response_size(response, "page_size")
        return response


def _new_relationship(relationship: pb.Relationship) -> NewRelationship:
    score = relationship.score if relationship.HasField("score") else None
    if score is not None:
        bounded(score, "relationship.score", low=0, high=1)
    return NewRelationship(
        relationship_id=uuid7(),
        type=enum(relationship.type, TYPES, "relationship.type"),
        source=_node(relationship.source, "relationship.source"),
        target=_node(relationship.target, "relationship.target"),
        score=score,
        metadata=struct(
            relationship.metadata, "relationship.metadata", max_bytes=MAX_METADATA_BYTES
        ),
    )


def _node(node: pb.Node, field: str) -> Node:
    kind = enum(node.kind, KINDS, f"{field}.kind")
    if kind is NodeKind.EXTERNAL:
        return Node(kind, require_text(node.id, f"{field}.id", max_chars=MAX_EXTERNAL_ID_CHARS))
    return Node(kind, str(require_uuid(node.id, f"{field}.id")))


def _query(request: pb.ListRelationshipsRequest, tenant_id: UUID, limit: int) -> RelationshipQuery:
    return RelationshipQuery(
        node=_node(request.node, "node"),
        end=enum(request.end, ENDS, "end"),
        types=enums(request.types, TYPES, "types"),
        limit=limit,
        cursor=decode_time_cursor(decode_page_token(request, tenant_id, parts=2)),
    )


def _new_attachment(attachment: pb.Attachment) -> NewAttachment:
    path = "attachment"
    bounded(attachment.size_bytes, f"{path}.size_bytes", low=0, high=MAX_SIZE_BYTES)
    return NewAttachment(
        attachment_id=optional_uuid(attachment.attachment_id, f"{path}.attachment_id") or uuid7(),
        conversation_id=require_uuid(attachment.conversation_id, f"{path}.conversation_id"),
        uri=require_text(attachment.uri, f"{path}.uri", max_chars=MAX_URI_CHARS),
        media_type=text(
            attachment.media_type, f"{path}.media_type", max_chars=MAX_MEDIA_TYPE_CHARS
        ),
        file_name=text(attachment.file_name, f"{path}.file_name", max_chars=MAX_FILE_NAME_CHARS),
        size_bytes=attachment.size_bytes,
        sha256=_sha256(attachment.sha256, f"{path}.sha256"),
        metadata=struct(attachment.metadata, f"{path}.metadata", max_bytes=MAX_METADATA_BYTES),
    )


def _sha256(value: str, field: str) -> str:
    if value and not _SHA256_HEX.fullmatch(value):
        raise FieldInvalidError(field, "must be 64 hexadecimal digits", value)
    return value.lower()


def _relationship_message(relationship: Relationship) -> pb.Relationship:
    message = pb.Relationship(
        relationship_id=str(relationship.relationship_id),
        type=_TYPE_NUMBERS[relationship.type],
        source=_node_message(relationship.source),
        target=_node_message(relationship.target),
        score=relationship.score,
        create_time=timestamp_message(relationship.created_at),
        label=relationship.label,
    )
    if relationship.metadata:
        message.metadata.update(relationship.metadata)
    return message


def _node_message(node: Node) -> pb.Node:
    return pb.Node(kind=_KIND_NUMBERS[node.kind], id=node.node_id)


def _attachment_message(attachment: Attachment) -> pb.Attachment:
    message = pb.Attachment(
        attachment_id=str(attachment.attachment_id),
        conversation_id=str(attachment.conversation_id),
        uri=attachment.uri,
        media_type=attachment.media_type,
        file_name=attachment.file_name,
        size_bytes=attachment.size_bytes,
        sha256=attachment.sha256,
        create_time=timestamp_message(attachment.created_at),
    )
    if attachment.metadata:
        message.metadata.update(attachment.metadata)
    return message


_LABEL_MESSAGES = [
    pb.RelationshipLabel(
        type=_TYPE_NUMBERS[label.type],
        source_kind=_KIND_NUMBERS[label.source_kind],
        target_kind=_KIND_NUMBERS[label.target_kind],
        label=label.label,
        inverse_label=label.inverse,
    )
    for label in LABELS
]
