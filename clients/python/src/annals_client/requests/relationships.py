"""How things refer to each other. A node is a pair: ("event", its id)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annals.storage.v1 import relationship_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call, single_call
from annals_client.values import enum_number, enum_numbers, struct

Node = pb.Node | tuple[str, str]
"""(kind, id); kind: event, conversation, memory, attachment or external."""


def create(
    relationship_type: int | str,
    source: Node,
    target: Node,
    *,
    score: float | None = None,
    metadata: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> Call[pb.Relationship]:
    """Store "the source … the target"; storing it again updates score and metadata.

    `relationship_type`: part-of, refers-to, embeds, corrects, settles, duplicate-of,
    depends-on, supersedes, and between conversations follow-up, related, duplicate.
    """
    relationship = pb.Relationship(
        type=enum_number(pb.RelationshipType, "RELATIONSHIP_TYPE_", relationship_type),
        source=_node(source),
        target=_node(target),
        score=score,
        metadata=struct(metadata),
    )
    request = pb.CreateRelationshipRequest(relationship=relationship)
    call = safe_call(lambda stubs: stubs.relationships.CreateRelationship, request, timeout)
    return call.map(lambda answer: answer.relationship)


def list_all(
    node: Node,
    *,
    end: int | str = "either",
    types: Sequence[int | str] = (),
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.Relationship]:
    """Relationships of a node, newest first. `end`: source, target or either."""
    request = pb.ListRelationshipsRequest(
        node=_node(node),
        end=enum_number(pb.RelationshipEnd, "RELATIONSHIP_END_", end),
        types=enum_numbers(pb.RelationshipType, "RELATIONSHIP_TYPE_", types),
        page_size=page_size,
    )
    call = safe_call(lambda stubs: stubs.relationships.ListRelationships, request, timeout)
    return Pages(call, lambda answer: answer.relationships, limit)


def delete(relationship_id: str, *, timeout: float | None = None) -> Call[None]:
    """Remove a relationship. Not repeated by itself: the second time it is not found."""
    request = pb.DeleteRelationshipRequest(relationship_id=relationship_id)
    call = single_call(lambda stubs: stubs.relationships.DeleteRelationship, request, timeout)
    return call.map(lambda _answer: None)


def types(*, timeout: float | None = None) -> Call[Sequence[pb.RelationshipLabel]]:
    """The fixed types with their labels for display, most specific first."""
    request = pb.ListRelationshipTypesRequest()
    call = safe_call(lambda stubs: stubs.relationships.ListRelationshipTypes, request, timeout)
    return call.map(lambda answer: list(answer.labels))


def _node(node: Node) -> pb.Node:
    if isinstance(node, pb.Node):
        return node
    kind, node_id = node
    return pb.Node(kind=enum_number(pb.NodeKind, "NODE_KIND_", kind), id=node_id)
