"""Relationships between things of a tenant, their labels, and attachments."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class RelationshipType(StrEnum):
    """What the source is to the target, as stored."""

    PART_OF = "part_of"
    REFERS_TO = "refers_to"
    EMBEDS = "embeds"
    CORRECTS = "corrects"
    SETTLES = "settles"
    DUPLICATE_OF = "duplicate_of"
    DEPENDS_ON = "depends_on"
    SUPERSEDES = "supersedes"
    FOLLOW_UP = "follow_up"
    RELATED = "related"
    DUPLICATE = "duplicate"


class NodeKind(StrEnum):
    """What a relationship joins, as stored."""

    EVENT = "event"
    CONVERSATION = "conversation"
    MEMORY = "memory"
    ATTACHMENT = "attachment"
    EXTERNAL = "external"


class RelationshipEnd(StrEnum):
    """Which end of a relationship a node is."""

    EITHER = "either"
    SOURCE = "source"
    TARGET = "target"


ACYCLIC = frozenset(
    {RelationshipType.PART_OF, RelationshipType.DEPENDS_ON, RelationshipType.SUPERSEDES}
)
"""Types that may not lead from something back to itself."""

BETWEEN_CONVERSATIONS = frozenset(
    {RelationshipType.FOLLOW_UP, RelationshipType.RELATED, RelationshipType.DUPLICATE}
)


@dataclass(frozen=True, slots=True)
class Node:
    """One end. `node_id`: a UUID in canonical form; of EXTERNAL any text."""

    kind: NodeKind
    node_id: str


@dataclass(frozen=True, slots=True)
class NewRelationship:
    """A validated relationship on its way into the store."""

    relationship_id: UUID
    type: RelationshipType
    source: Node
    target: Node
    score: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Relationship:
    """A stored relationship. `score`: 0–1."""

    relationship_id: UUID
    type: RelationshipType
    source: Node
    target: Node
    created_at: datetime
    score: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return the type as people read it, from source to target."""
        return label_of(self.type, self.source.kind, self.target.kind).label


@dataclass(frozen=True, slots=True)
class RelationshipQuery:
    """A page of the relationships of a node, newest first. No types: any."""

    node: Node
    end: RelationshipEnd
    types: tuple[RelationshipType, ...]
    limit: int
    cursor: tuple[datetime, UUID] | None


@dataclass(frozen=True, slots=True)
class Label:
    """How people read a type between these kinds; a kind of None stands for any other."""

    type: RelationshipType
    label: str
    inverse: str
    source_kind: NodeKind | None = None
    target_kind: NodeKind | None = None


LABELS = (
    Label(
        RelationshipType.PART_OF,
        "is a message of",
        "contains message",
        NodeKind.EVENT,
        NodeKind.CONVERSATION,
    ),
    Label(
        RelationshipType.PART_OF, "was noted in", "noted", NodeKind.MEMORY, NodeKind.CONVERSATION
    ),
    Label(
        RelationshipType.REFERS_TO,
        "discusses",
        "is discussed in",
        NodeKind.CONVERSATION,
        NodeKind.EXTERNAL,
    ),
    Label(
        RelationshipType.REFERS_TO, "mentions", "is mentioned in", NodeKind.EVENT, NodeKind.EXTERNAL
    ),
    Label(RelationshipType.PART_OF, "is part of", "contains"),
    Label(RelationshipType.REFERS_TO, "refers to", "is referred to by"),
    Label(RelationshipType.EMBEDS, "embeds", "is embedded in"),
    Label(RelationshipType.CORRECTS, "corrects", "is corrected by"),
    Label(RelationshipType.SETTLES, "settles", "is settled by"),
    Label(RelationshipType.DUPLICATE_OF, "duplicates", "is duplicated by"),
    Label(RelationshipType.DEPENDS_ON, "depends on", "is needed by"),
    Label(RelationshipType.SUPERSEDES, "supersedes", "is superseded by"),
    Label(RelationshipType.FOLLOW_UP, "follows up on", "is followed up by"),
    Label(RelationshipType.RELATED, "is related to", "is related to"),
    Label(RelationshipType.DUPLICATE, "is the same as", "is the same as"),
)
"""Most specific first: the first that fits is the one."""


def label_of(kind: RelationshipType, source: NodeKind, target: NodeKind) -> Label:
    """Return how people read a type between two kinds."""
    return next(
        label
        for label in LABELS
        if label.type is kind
        and label.source_kind in {None, source}
        and label.target_kind in {None, target}
    )


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A validated reference to bytes kept elsewhere. `sha256`: hex digits, or empty."""

    attachment_id: UUID
    conversation_id: UUID
    uri: str
    media_type: str = ""
    file_name: str = ""
    size_bytes: int = 0
    sha256: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A stored attachment."""

    attachment_id: UUID
    conversation_id: UUID
    uri: str
    created_at: datetime
    media_type: str = ""
    file_name: str = ""
    size_bytes: int = 0
    sha256: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def is_as_asked(self, new: NewAttachment) -> bool:
        """Whether storing `new` would have made just this."""
        return all(getattr(self, name) == getattr(new, name) for name in new.__slots__)
