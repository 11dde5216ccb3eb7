"""Generations of the mirror: collections of the vector engine, and the models that fill them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

FIRST = 1
"""The generation of an installation that was never rebuilt."""


class GenerationState(StrEnum):
    """What a generation is there for.

    `building`: being filled, not searched · `serving`: searched · `retired`: searched by nobody
    who knows better, for as long as somebody may not · `removing`: going. All but the last are
    written to.
    """

    BUILDING = "building"
    SERVING = "serving"
    RETIRED = "retired"
    REMOVING = "removing"


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model by name. `directory`: of its files, None where its name is enough."""

    name: str
    directory: str | None
    dimensions: int


@dataclass(frozen=True, slots=True)
class MirrorGeneration:
    """One generation.

    `chunks_of`: the generation whose chunks it holds; generations of one model share them.
    `sources_total`: events and memories to mirror, None until they were counted. `problem`: what
    keeps it from serving, empty when nothing does.
    """

    number: int
    state: GenerationState
    model: EmbeddingModel
    chunks_of: int
    sources_total: int | None
    sources_done: int
    problem: str

    @property
    def progress(self) -> float:
        """Part of the sources that were taken up, from 0 to 1."""
        if self.state is not GenerationState.BUILDING:
            return 1.0
        if self.sources_total is None:
            return 0.0
        return min(1.0, self.sources_done / self.sources_total) if self.sources_total else 1.0


@dataclass(frozen=True, slots=True)
class BuildPosition:
    """How far a walk through all tenants is: this tenant, up to this event or memory.

    The tenants are in the order of `tenant_created_at`, then `tenant_id`.
    """

    tenant_created_at: datetime
    tenant_id: UUID
    after: UUID | None


@dataclass(frozen=True, slots=True)
class Build:
    """What a build has come to. `walked_at`: the end of the walk, None before it."""

    position: BuildPosition | None
    walked_at: datetime | None
    parked_before: int


@dataclass(frozen=True, slots=True)
class MirrorPlace:
    """What a mirror by one model does beside mirrors by other models.

    `chunks_of`: see MirrorGeneration. `other_models`: models whose chunks are not its own.
    `is_serving`: the embeddings of memories that it makes are the ones that callers are told of.
    """

    chunks_of: int = FIRST
    other_models: tuple[str, ...] = ()
    is_serving: bool = True


ALONE = MirrorPlace()
"""The place of a mirror without others beside it."""
