"""Removes a generation of the mirror, and what PostgreSQL keeps for it alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import structlog

from annals_storage.commands.generations import Generations
from annals_storage.domain.generations import MirrorGeneration
from annals_storage.ports.generations import GenerationStore, MirrorEngines, SourceStore
from annals_storage.ports.tenancy import TenantStore

PAGE = 1_000
log = structlog.get_logger()


class RemoveGeneration:
    """Deletes a collection, then the chunks that only it had; may be stopped and done again."""

    def __init__(
        self,
        *,
        store: GenerationStore,
        sources: SourceStore,
        tenants: TenantStore,
        engines: MirrorEngines,
        generations: Generations,
    ) -> None:
        self._store, self._sources, self._tenants = store, sources, tenants
        self._engines, self._generations = engines, generations

    async def __call__(self, generation: MirrorGeneration) -> None:
        """Raises DependencyUnavailableError."""
        # This process lets go of it first.
        await self._generations.refresh()
        await self._engines.remove(generation)
        serving = self._generations.serving.generation.model.name
        model = generation.model.name
        async for tenant_id in self._tenant_ids():
            if model != serving:
                await self._forget_chunks(tenant_id, model)
            await self._sources.settle_memories(tenant_id, serving)
        await self._store.forget(generation.number)
        log.info("generation removed", generation=generation.number)

    async def _forget_chunks(self, tenant_id: UUID, model: str) -> None:
        after: UUID | None = None
        while True:
            after = await self._sources.forget_chunks(tenant_id, model, after=after, limit=PAGE)
            if after is None:
                return

    async def _tenant_ids(self) -> AsyncIterator[UUID]:
        cursor = None
        while page := await self._tenants.page(cursor=cursor, limit=PAGE):
            for tenant in page:
                yield tenant.tenant_id
            cursor = (page[-1].created_at, page[-1].tenant_id)
