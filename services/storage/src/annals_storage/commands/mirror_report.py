"""What a verification of the mirror works with, finds and says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from annals_storage.domain.mirror import Drift, MirroredRow, StoredPoint
from annals_storage.ports.mirrored import MirroredRows
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.tenancy import TenantStore
from annals_storage.ports.vectors import VectorIndex

EXAMPLES = 5
"""How many ids are kept of each kind."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class MirrorParts:
    """What is compared."""

    tenants: TenantStore
    outbox: Outbox
    rows: MirroredRows
    vectors: VectorIndex


class Difference(NamedTuple):
    """A point that is not as it should be: its row and what the engine holds, where there are."""

    kind: Drift
    point_id: UUID
    row: MirroredRow | None
    point: StoredPoint | None


@dataclass(slots=True)
class MirrorReport:
    """What was compared and what differs; the kinds are those of `Drift`.

    `chunks`: rows, memories included. `pending`, `parked`: entries of the outbox; what waits there
    is no drift, what was parked is. `examples`: ids of points by kind. `deleted`, `enqueued`:
    points, and events with memories, by a repair.
    """

    tenants: int = 0
    chunks: int = 0
    pending: int = 0
    parked: int = 0
    missing: int = 0
    extra: int = 0
    foreign: int = 0
    stale: int = 0
    wrong_payload: int = 0
    deleted: int = 0
    enqueued: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether every point is as it should be, save what waits in the outbox."""
        return not any(getattr(self, kind) for kind in Drift)

    def add(self, kind: Drift, point_id: UUID) -> None:
        """Count a point that differs."""
        setattr(self, kind, getattr(self, kind) + 1)
        examples = self.examples.setdefault(kind.value, [])
        if len(examples) < EXAMPLES:
            examples.append(str(point_id))

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)
