"""Relationships and attachments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from annals_common.errors import (
    RelationshipCycleError,
    ResourceAlreadyExistsError,
    ResourceNotFoundError,
)
from annals_common.ids import uuid7
from annals_storage.domain.relationships import (
    ACYCLIC,
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
from annals_storage.ports.paging import PageCursor
from annals_storage.postgres.database import Database, Params, Transaction, sql

_KINDS = (NodeKind.CONVERSATION, NodeKind.EVENT, NodeKind.MEMORY, NodeKind.ATTACHMENT)


class PostgresRelationships:
    """Relationships and attachments of a tenant. Deleted conversations are not visible."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, tenant_id: UUID, new: NewRelationship) -> Relationship:
        """Insert it, or update score and metadata of what is there.

        Raises ResourceNotFoundError without an end, RelationshipCycleError.
        """
        async with self._database.transaction(tenant_id) as transaction:
            return await _create(transaction, tenant_id, new)

    async def page(self, tenant_id: UUID, query: RelationshipQuery) -> list[Relationship]:
        """Return one page, newest first."""
        cursor_time, cursor_id = query.cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            "kind": query.node.kind.value,
            "id": query.node.node_id,
            "as_source": query.end is not RelationshipEnd.TARGET,
            "as_target": query.end is not RelationshipEnd.SOURCE,
            "types": [kind.value for kind in query.types] or None,
            "limit": query.limit,
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_relationships"), params))
        return [_relationship_from(row) for row in rows]

    async def delete(self, tenant_id: UUID, relationship_id: UUID) -> None:
        """Raises ResourceNotFoundError."""
        params = {"tenant_id": tenant_id, "relationship_id": relationship_id}
        [rows] = await self._database.run(tenant_id, (sql("delete_relationship"), params))
        if not rows:
            raise ResourceNotFoundError("relationship", str(relationship_id))

    async def attach(
        self, tenant_id: UUID, new: NewAttachment, *, event_id: UUID | None
    ) -> Attachment:
        """Insert it, and the EMBEDS of an event of its conversation.

        Raises ResourceNotFoundError, and ResourceAlreadyExistsError when other content has the id.
        """
        async with self._database.transaction(tenant_id) as transaction:
            await _require_owners(transaction, tenant_id, new, event_id)
            attachment = await _insert_attachment(transaction, tenant_id, new)
            if event_id is not None:
                await _create(transaction, tenant_id, _embeds(event_id, attachment))
            return attachment

    async def get_attachment(self, tenant_id: UUID, attachment_id: UUID) -> Attachment:
        """Raises ResourceNotFoundError."""
        params = {"tenant_id": tenant_id, "attachment_id": attachment_id}
        [rows] = await self._database.run(tenant_id, (sql("get_attachment"), params))
        if not rows or not rows[0]["visible"]:
            raise ResourceNotFoundError("attachment", str(attachment_id))
        return _attachment_from(rows[0])

    async def page_attachments(
        self, tenant_id: UUID, conversation_id: UUID, *, cursor: PageCursor, limit: int
    ) -> list[Attachment]:
        """Return one page, newest first."""
        cursor_time, cursor_id = cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "limit": limit,
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_attachments"), params))
        return [_attachment_from(row) for row in rows]


async def _create(transaction: Transaction, tenant_id: UUID, new: NewRelationship) -> Relationship:
    conversations = await _locked_ends(transaction, tenant_id, new.source, new.target)
    params = {
        "tenant_id": tenant_id,
        "relationship_id": new.relationship_id,
        "type": new.type.value,
        "source_kind": new.source.kind.value,
        "source_id": new.source.node_id,
        "target_kind": new.target.kind.value,
        "target_id": new.target.node_id,
        "score": new.score,
        "metadata": Jsonb(new.metadata),
        "source_conversation_id": conversations[new.source],
        "target_conversation_id": conversations[new.target],
    }
    if new.type in ACYCLIC:
        await _refuse_cycle(transaction, new, params)
    [row] = await transaction.run(sql("upsert_relationship"), params)
    return _relationship_from(row)


async def _refuse_cycle(transaction: Transaction, new: NewRelationship, params: Params) -> None:
    await transaction.run(sql("lock_relationships"), params)
    [path] = await transaction.run(sql("find_relationship_path"), params)
    if path["found"]:
        raise RelationshipCycleError(new.type.upper(), new.source.node_id)


async def _locked_ends(
    transaction: Transaction, tenant_id: UUID, *ends: Node
) -> Mapping[Node, UUID | None]:
    """Return the conversation of each end, all of them held. Raises ResourceNotFoundError."""
    params: dict[str, Any] = {"tenant_id": tenant_id}
    for kind in _KINDS:
        params[f"{kind.value}_ids"] = [UUID(end.node_id) for end in ends if end.kind is kind]
    await transaction.run(sql("lock_relationship_ends"), params)
    rows = await transaction.run(sql("get_relationship_ends"), params)
    found = {Node(NodeKind(row["kind"]), str(row["id"])): row["conversation_id"] for row in rows}
    for end in ends:
        if end not in found and end.kind is not NodeKind.EXTERNAL:
            raise ResourceNotFoundError(end.kind.value, end.node_id)
    return {end: found.get(end) for end in ends}


async def _require_owners(
    transaction: Transaction, tenant_id: UUID, new: NewAttachment, event_id: UUID | None
) -> None:
    conversation = Node(NodeKind.CONVERSATION, str(new.conversation_id))
    ends = [conversation]
    if event_id is not None:
        ends.append(Node(NodeKind.EVENT, str(event_id)))
    found = await _locked_ends(transaction, tenant_id, *ends)
    if event_id is not None and found[ends[-1]] != new.conversation_id:
        raise ResourceNotFoundError("event", str(event_id))


async def _insert_attachment(
    transaction: Transaction, tenant_id: UUID, new: NewAttachment
) -> Attachment:
    params = {
        "tenant_id": tenant_id,
        **{name: getattr(new, name) for name in new.__slots__},
        "metadata": Jsonb(new.metadata),
    }
    await transaction.run(sql("insert_attachment"), params)
    [row] = await transaction.run(sql("get_attachment"), params)
    attachment = _attachment_from(row)
    if not attachment.is_as_asked(new):
        raise ResourceAlreadyExistsError("attachment", str(new.attachment_id))
    return attachment


def _embeds(event_id: UUID, attachment: Attachment) -> NewRelationship:
    return NewRelationship(
        relationship_id=uuid7(),
        type=RelationshipType.EMBEDS,
        source=Node(NodeKind.EVENT, str(event_id)),
        target=Node(NodeKind.ATTACHMENT, str(attachment.attachment_id)),
    )


def _relationship_from(row: DictRow) -> Relationship:
    return Relationship(
        relationship_id=row["relationship_id"],
        type=RelationshipType(row["type"]),
        source=Node(NodeKind(row["source_kind"]), row["source_id"]),
        target=Node(NodeKind(row["target_kind"]), row["target_id"]),
        created_at=row["created_at"],
        score=row["score"],
        metadata=row["metadata"],
    )


def _attachment_from(row: DictRow) -> Attachment:
    return Attachment(**{name: row[name] for name in Attachment.__slots__})
