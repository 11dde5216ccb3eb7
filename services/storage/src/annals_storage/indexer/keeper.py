"""Brings generations of the mirror forward: builds one, has it serve, removes the former."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import structlog

from annals_common.cancellation import pause
from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.generations import GenerationState, MirrorGeneration
from annals_storage.ports.generations import GenerationStore, MirrorEngines

LEASE = timedelta(seconds=30)
PROLONG_SECONDS = 10.0
LOOK_SECONDS = 0.5
RELEASE_SECONDS = 2.0
log = structlog.get_logger()

Work = Callable[[MirrorGeneration], Awaitable[None]]


class MirrorKeeper:
    """Runs until cancelled. Of any number side by side, one at a time does the work."""

    def __init__(
        self,
        *,
        store: GenerationStore,
        engines: MirrorEngines,
        build: Work,
        remove: Work,
        owner: str,
        grace: timedelta,
    ) -> None:
        self._store, self._engines = store, engines
        self._build, self._remove = build, remove
        self._owner, self._grace = owner, grace
        self._announced: int | None = None

    async def run(self) -> None:
        """Look again and again what there is to do. Its leases are given back at its end."""
        try:
            while True:
                try:
                    await self.step()
                except (DependencyUnavailableError, TimeoutError) as error:
                    log.warning("generations of the mirror", cause=str(error))
                except Exception as error:
                    # Indexing goes on; the next look begins where this one stopped.
                    log.exception("generations of the mirror", exc_info=error)
                await pause(LOOK_SECONDS)
        finally:
            with suppress(DependencyUnavailableError, TimeoutError):
                await asyncio.wait_for(self._store.release(self._owner), RELEASE_SECONDS)

    async def step(self) -> None:
        """Do what there is to do, to its end."""
        await self._store.let_go(self._grace)
        for generation in await self._store.all():
            match generation.state:
                case GenerationState.SERVING:
                    await self._announce(generation)
                case GenerationState.BUILDING:
                    await self._leased(generation, self._build)
                case GenerationState.REMOVING:
                    await self._leased(generation, self._remove)

    async def _announce(self, generation: MirrorGeneration) -> None:
        if self._announced != generation.number:
            await self._engines.announce(generation)
            self._announced = generation.number

    async def _leased(self, generation: MirrorGeneration, work: Work) -> None:
        if await self._store.keep(generation.number, self._owner, LEASE):
            async with self._prolonged(generation.number):
                await work(generation)

    @asynccontextmanager
    async def _prolonged(self, number: int) -> AsyncIterator[None]:
        """Keep the lease inside the block. Losing it does no harm: work done twice is done once."""

        async def prolong() -> None:
            while True:
                await pause(PROLONG_SECONDS)
                with suppress(DependencyUnavailableError, TimeoutError):
                    await self._store.keep(number, self._owner, LEASE)

        prolonging = asyncio.create_task(prolong())
        try:
            yield
        finally:
            prolonging.cancel()
            with suppress(asyncio.CancelledError):
                await prolonging
