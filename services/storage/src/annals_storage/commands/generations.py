"""The generations of the mirror as this process has them open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import structlog

from annals_common.cancellation import pause
from annals_common.errors import DependencyUnavailableError
from annals_storage.commands.generation_metrics import show
from annals_storage.commands.query_embedding import QueryEmbeddings
from annals_storage.domain.generations import GenerationState, MirrorGeneration
from annals_storage.ports.generations import (
    GenerationStore,
    LoadedEmbedder,
    MirrorEngines,
    Models,
)
from annals_storage.ports.vectors import VectorIndex

REFRESH_SECONDS = 1.0
AskedT = TypeVar("AskedT")
FoundT = TypeVar("FoundT")
log = structlog.get_logger()


class GenerationUnusableError(DependencyUnavailableError):
    """Its model cannot be loaded, or its collection not be opened; the cause says why."""

    def __init__(self, generation: MirrorGeneration, cause: Exception) -> None:
        super().__init__(f"generation {generation.number} of the mirror")
        self.__cause__ = cause
        log.error("generation not opened", generation=generation.number, cause=str(cause))


@dataclass(frozen=True, slots=True)
class OpenGeneration:
    """A generation with its collection and its model."""

    generation: MirrorGeneration
    vectors: VectorIndex
    embedder: LoadedEmbedder
    embeddings: QueryEmbeddings

    @property
    def number(self) -> int:
        """The generation's."""
        return self.generation.number


class Generations:
    """What is searched and what is written to, as PostgreSQL has it.

    Every process reads that again each second, and an indexer after each batch.
    """

    def __init__(self, store: GenerationStore, engines: MirrorEngines, models: Models) -> None:
        self._store, self._engines, self._models = store, engines, models
        self._open: dict[int, OpenGeneration] = {}
        self._lock = asyncio.Lock()

    @property
    def live(self) -> tuple[OpenGeneration, ...]:
        """Every one that is written to."""
        return tuple(self._open.values())

    @property
    def serving(self) -> OpenGeneration:
        """The one that is searched. Raises DependencyUnavailableError before there is one."""
        states = (GenerationState.SERVING, GenerationState.RETIRED)
        for state in states:
            for each in self._open.values():
                if each.generation.state is state:
                    return each
        raise DependencyUnavailableError("vector engine")

    @property
    def building(self) -> MirrorGeneration | None:
        """The one that is being built."""
        found = (each.generation for each in self._open.values())
        return next((each for each in found if each.state is GenerationState.BUILDING), None)

    def number(self, number: int) -> OpenGeneration | None:
        """Return a generation that is open, by its number."""
        return self._open.get(number)

    async def refresh(self) -> None:
        """Open what has come, let go of what goes, see what serves.

        Raises DependencyUnavailableError when PostgreSQL or an engine does not answer, and
        GenerationUnusableError when a model or a collection is no good; the others are opened.
        """
        async with self._lock:
            rows = await self._store.all()
            wanted = {row.number: row for row in rows if row.state is not GenerationState.REMOVING}
            gone = [self._open[number] for number in self._open.keys() - wanted.keys()]
            self._open = {
                number: replace(self._open[number], generation=row)
                for number, row in wanted.items()
                if number in self._open
            }
            show(wanted.values())
            for each in gone:
                await self._close(each)
            await self._open_all([row for row in wanted.values() if row.number not in self._open])

    async def watch(self) -> None:
        """Refresh each second until cancelled."""
        while True:
            await pause(REFRESH_SECONDS)
            try:
                await self.refresh()
            except (DependencyUnavailableError, TimeoutError) as error:
                log.warning("generations of the mirror", cause=str(error))

    async def close(self) -> None:
        """Let go of all of them."""
        former, self._open = self.live, {}
        for each in former:
            await self._close(each)

    async def _open_all(self, rows: Sequence[MirrorGeneration]) -> None:
        """Open what can be opened; raise the first error at the end."""
        failures: list[DependencyUnavailableError] = []
        for row in rows:
            try:
                self._open[row.number] = await self._opened(row)
            except DependencyUnavailableError as error:
                failures.append(error)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others are opened
                failures.append(GenerationUnusableError(row, error))
        if failures:
            raise failures[0]

    async def _opened(self, row: MirrorGeneration) -> OpenGeneration:
        shared = next((e for e in self.live if e.generation.model.name == row.model.name), None)
        if shared is not None:
            vectors = await self._engines.open(row)
            return OpenGeneration(row, vectors, shared.embedder, shared.embeddings)
        embedder = await self._models.load(row.model)
        try:
            vectors = await self._engines.open(row)
        except BaseException:
            embedder.close()
            raise
        return OpenGeneration(row, vectors, embedder, QueryEmbeddings(embedder))

    async def _close(self, each: OpenGeneration) -> None:
        await each.vectors.close()
        if not any(other.embedder is each.embedder for other in self.live):
            await asyncio.to_thread(each.embedder.close)


class OfServing(Generic[AskedT, FoundT]):
    """A use case over the generation that serves when it is called, to its end.

    So one search has one model and one collection, whatever serves meanwhile.
    """

    def __init__(
        self,
        generations: Generations,
        make: Callable[[OpenGeneration], Callable[[AskedT], Awaitable[FoundT]]],
    ) -> None:
        self._generations, self._make = generations, make
        self._made: tuple[int, Callable[[AskedT], Awaitable[FoundT]]] | None = None

    async def __call__(self, asked: AskedT) -> FoundT:
        """Return what the use case returns."""
        serving = self._generations.serving
        if self._made is None or self._made[0] != serving.number:
            self._made = serving.number, self._make(serving)
        return await self._made[1](asked)


def same(before: Sequence[OpenGeneration], after: Sequence[OpenGeneration]) -> bool:
    """Whether these are the same generations in the same states."""
    return _states(before) == _states(after)


def _states(these: Sequence[OpenGeneration]) -> list[tuple[int, GenerationState]]:
    return [(each.number, each.generation.state) for each in these]
