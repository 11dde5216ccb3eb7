"""Generations of the mirror, and the sources they are built of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from annals_storage.domain.generations import (
    Build,
    BuildPosition,
    EmbeddingModel,
    GenerationState,
    MirrorGeneration,
)
from annals_storage.postgres.database import Database, Params, Rows, sql

_ALL = "SELECT * FROM public.annals_mirror_generations ORDER BY number"
_FIRST = """
INSERT INTO public.annals_mirror_generations
  (number, state, embedding_model, model_dir, dimensions, chunks_of)
SELECT 1, 'serving', %(name)s, %(directory)s, %(dimensions)s, 1
WHERE NOT EXISTS (SELECT FROM public.annals_mirror_generations)
ON CONFLICT DO NOTHING
"""
_REQUEST = """
INSERT INTO public.annals_mirror_generations
  (number, state, embedding_model, model_dir, dimensions, chunks_of)
SELECT n.number, 'building', %(name)s, %(directory)s, %(dimensions)s,
       CASE WHEN s.embedding_model = %(name)s THEN s.chunks_of ELSE n.number END
FROM public.annals_mirror_generations AS s
CROSS JOIN (
  SELECT nextval('public.annals_mirror_generation_numbers')::integer AS number
) AS n
WHERE s.state = 'serving' AND (SELECT count(*) FROM public.annals_mirror_generations) = 1
ON CONFLICT DO NOTHING
RETURNING *
"""
_CANCEL = """
UPDATE public.annals_mirror_generations
SET state = 'removing', changed_at = now(), keeper = NULL, keeper_until = NULL
WHERE state = 'building'
RETURNING *
"""
_KEEP = """
UPDATE public.annals_mirror_generations
SET keeper = %(owner)s, keeper_until = clock_timestamp() + %(lease)s
WHERE number = %(number)s
  AND (keeper IS NULL OR keeper = %(owner)s OR keeper_until < clock_timestamp())
RETURNING number
"""
_RELEASE = """
UPDATE public.annals_mirror_generations SET keeper = NULL, keeper_until = NULL
WHERE keeper = %(owner)s
"""
_BUILD = """
SELECT position, walked_at, parked_before FROM public.annals_mirror_generations
WHERE number = %(number)s AND state = 'building'
"""
_COUNT = """
UPDATE public.annals_mirror_generations
SET sources_total = %(sources)s, parked_before = %(parked)s
WHERE number = %(number)s AND sources_total IS NULL
"""
_ADVANCE = """
UPDATE public.annals_mirror_generations
SET position = %(position)s, sources_done = sources_done + %(done)s
WHERE number = %(number)s
"""
_WALKED = """
UPDATE public.annals_mirror_generations SET walked_at = clock_timestamp()
WHERE number = %(number)s AND walked_at IS NULL
"""
_NOTE = """
UPDATE public.annals_mirror_generations SET problem = %(problem)s
WHERE number = %(number)s AND problem <> %(problem)s
"""
_RETIRE = """
UPDATE public.annals_mirror_generations
SET state = 'retired', changed_at = clock_timestamp(), keeper = NULL, keeper_until = NULL
WHERE state = 'serving' AND EXISTS (
  SELECT FROM public.annals_mirror_generations WHERE number = %(number)s AND state = 'building')
"""
_SERVE = """
UPDATE public.annals_mirror_generations
SET state = 'serving', changed_at = clock_timestamp(), problem = '', keeper = NULL,
    keeper_until = NULL
WHERE number = %(number)s AND state = 'building'
"""
_LET_GO = """
UPDATE public.annals_mirror_generations SET state = 'removing', changed_at = clock_timestamp()
WHERE state = 'retired' AND changed_at + %(grace)s <= clock_timestamp()
"""
_FORGET = """
DELETE FROM public.annals_mirror_generations WHERE number = %(number)s AND state = 'removing'
"""


class PostgresGenerations:
    """`GenerationStore` over PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[MirrorGeneration]:
        """Return them by number."""
        return [_generation(row) for row in await self._run(_ALL, {})]

    async def first(self, model: EmbeddingModel) -> None:
        """Have the first one serve, unless there is one."""
        await self._run(_FIRST, _model_params(model))

    async def request(self, model: EmbeddingModel) -> MirrorGeneration | None:
        """Begin to build one; None unless the serving one is all there is."""
        rows = await self._run(_REQUEST, _model_params(model))
        return _generation(rows[0]) if rows else None

    async def cancel(self) -> MirrorGeneration | None:
        """Have the one that is being built removed; None when there is none."""
        rows = await self._run(_CANCEL, {})
        return _generation(rows[0]) if rows else None

    async def keep(self, number: int, owner: str, lease: timedelta) -> bool:
        """Take or prolong the lease of who builds or removes it; return whether it is held."""
        return bool(await self._run(_KEEP, {"number": number, "owner": owner, "lease": lease}))

    async def release(self, owner: str) -> None:
        """Give back the leases of this owner."""
        await self._run(_RELEASE, {"owner": owner})

    async def build(self, number: int) -> Build | None:
        """Return what a build has come to; None when it is no longer being built."""
        rows = await self._run(_BUILD, {"number": number})
        if not rows:
            return None
        held, row = rows[0]["position"], rows[0]
        return Build(_position(held) if held else None, row["walked_at"], row["parked_before"])

    async def count(self, number: int, sources: int, parked: int) -> None:
        """Note how much there is to do, and what was parked before."""
        await self._run(_COUNT, {"number": number, "sources": sources, "parked": parked})

    async def advance(self, number: int, position: BuildPosition, done: int) -> None:
        """Note how far the walk is, and how many more sources were taken up."""
        held = {
            "tenant_created_at": position.tenant_created_at.isoformat(),
            "tenant_id": str(position.tenant_id),
            "after": str(position.after) if position.after else None,
        }
        await self._run(_ADVANCE, {"number": number, "position": Jsonb(held), "done": done})

    async def walked(self, number: int) -> None:
        """Note the end of the walk."""
        await self._run(_WALKED, {"number": number})

    async def note(self, number: int, problem: str) -> None:
        """Note what keeps it from serving."""
        await self._run(_NOTE, {"number": number, "problem": problem})

    async def serve(self, number: int) -> None:
        """Have it serve and the former one retire, at once. Nothing unless it is being built."""
        params = {"number": number}
        await self._database.run_untenanted((_RETIRE, params), (_SERVE, params))

    async def let_go(self, grace: timedelta) -> None:
        """Have the retired one removed when it has been that for so long."""
        await self._run(_LET_GO, {"grace": grace})

    async def forget(self, number: int) -> None:
        """Drop it, of which nothing is left."""
        await self._run(_FORGET, {"number": number})

    async def _run(self, query: str, params: Params) -> Rows:
        [rows] = await self._database.run_untenanted((query, params))
        return rows


def _model_params(model: EmbeddingModel) -> Params:
    return {"name": model.name, "directory": model.directory, "dimensions": model.dimensions}


def _generation(row: dict[str, Any]) -> MirrorGeneration:
    return MirrorGeneration(
        number=row["number"],
        state=GenerationState(row["state"]),
        model=EmbeddingModel(row["embedding_model"], row["model_dir"], row["dimensions"]),
        chunks_of=row["chunks_of"],
        sources_total=row["sources_total"],
        sources_done=row["sources_done"],
        problem=row["problem"],
    )


def _position(held: dict[str, Any]) -> BuildPosition:
    return BuildPosition(
        tenant_created_at=datetime.fromisoformat(held["tenant_created_at"]),
        tenant_id=UUID(held["tenant_id"]),
        after=UUID(held["after"]) if held["after"] else None,
    )


class PostgresSources:
    """`SourceStore` over PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, tenant_id: UUID) -> int:
        """Return how many there are, deleted ones left out."""
        [[row]] = await self._run(tenant_id, "count_sources", {})
        return int(row["sources"])

    async def enqueue_page(self, tenant_id: UUID, *, after: UUID | None, limit: int) -> list[UUID]:
        """Have the next ones mirrored again; return their ids in order. Parked ones stay parked."""
        [rows] = await self._run(tenant_id, "enqueue_source_page", {"after": after, "limit": limit})
        return [row["key"] for row in rows]

    async def any_waiting(self, tenant_id: UUID, keys: Sequence[UUID]) -> bool:
        """Whether one of these waits to be mirrored and has not failed."""
        [[row]] = await self._run(tenant_id, "any_source_waiting", {"keys": list(keys)})
        return bool(row["waiting"])

    async def waiting(self, until: datetime) -> int:
        """Return how much of what was enqueued until then waits, of any tenant."""
        query = "SELECT annals.outbox_waiting(%(until)s) AS waiting"
        [[row]] = await self._database.run_untenanted((query, {"until": until}))
        return int(row["waiting"])

    async def forget_chunks(
        self, tenant_id: UUID, model: str, *, after: UUID | None, limit: int
    ) -> UUID | None:
        """Drop a model's chunks among the next ones; return the last one looked at."""
        params = {"embedding_model": model, "after": after, "limit": limit}
        [[row]] = await self._run(tenant_id, "forget_chunks", params)
        return UUID(str(row["last"])) if row["last"] else None

    async def settle_memories(self, tenant_id: UUID, model: str) -> None:
        """Have the embeddings by this model be the only ones, where there are such."""
        await self._run(tenant_id, "settle_memory_embeddings", {"embedding_model": model})

    async def _run(self, tenant_id: UUID, name: str, params: Params) -> list[Rows]:
        return await self._database.run(tenant_id, (sql(name), {"tenant_id": tenant_id, **params}))
