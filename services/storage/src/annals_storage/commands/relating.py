"""Which relationships make sense, whatever is stored."""

from __future__ import annotations

from uuid import UUID

from annals_common.errors import FieldInvalidError
from annals_storage.domain.relationships import (
    BETWEEN_CONVERSATIONS,
    NewRelationship,
    Node,
    NodeKind,
    Relationship,
    RelationshipType,
)
from annals_storage.ports.relationships import RelationshipStore


class Relate:
    """Stores a relationship, or updates the one that joins the same ends in the same way."""

    def __init__(self, relationships: RelationshipStore) -> None:
        self._relationships = relationships

    async def __call__(self, tenant_id: UUID, new: NewRelationship) -> Relationship:
        """Raises FieldInvalidError, ResourceNotFoundError or RelationshipCycleError."""
        if new.source == new.target:
            raise FieldInvalidError(
                "relationship.target.id", "must not be the source itself", new.target.node_id
            )
        _check_kinds(new)
        return await self._relationships.create(tenant_id, new)


def _check_kinds(new: NewRelationship) -> None:
    if new.type in BETWEEN_CONVERSATIONS:
        for field, node in (("source", new.source), ("target", new.target)):
            _require(node, NodeKind.CONVERSATION, field, new.type)
    if new.type is RelationshipType.EMBEDS:
        _require(new.target, NodeKind.ATTACHMENT, "target", new.type)


def _require(node: Node, kind: NodeKind, field: str, relationship: RelationshipType) -> None:
    if node.kind is not kind:
        raise FieldInvalidError(
            f"relationship.{field}.kind",
            f"must be {kind.upper()} for {relationship.upper()}",
            node.kind.upper(),
        )
