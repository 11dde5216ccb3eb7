"""Mirrors into every generation there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from annals_common.errors import DependencyUnavailableError
from annals_storage.commands.generations import Generations, OpenGeneration, same
from annals_storage.commands.vectors_together import WrittenTogether
from annals_storage.domain.generations import GenerationState, MirrorPlace
from annals_storage.domain.indexing import OutboxEntry
from annals_storage.indexer.chunker import MAX_CHUNKS
from annals_storage.indexer.engine_half import EngineHalf, EngineOutage
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.stages import staged
from annals_storage.ports.embedding import SparseEncoder
from annals_storage.ports.outbox import Outbox


class LiveMirror:
    """`Mirror` into all generations, once for each model.

    It returns only when the generations it wrote to are still all there are. So an entry of the
    outbox that is acknowledged was mirrored into each of them; or, if one came after that look,
    everything the entry stands for was in PostgreSQL before that one was begun (ADR 0011).
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        generations: Generations,
        sparse: SparseEncoder,
        max_chunks: int = MAX_CHUNKS,
    ) -> None:
        """`max_chunks`: of an event."""
        self._outbox, self._generations, self._sparse = outbox, generations, sparse
        self._max_chunks, self._outage = max_chunks, EngineOutage()
        self._seen: Sequence[OpenGeneration] = ()
        self._mirrors: list[Mirror] = []

    async def refresh(self, entries: Sequence[OutboxEntry]) -> None:
        """Mirror these entries of one tenant as their rows are now; safe to repeat."""
        while not await self._refreshed(entries):
            pass

    async def engine_answers(self) -> bool:
        """Ask the engine whether all there is of it is there."""
        return await EngineHalf(_together(self._generations.live), self._outage).answers()

    async def _refreshed(self, entries: Sequence[OutboxEntry]) -> bool:
        seen = self._generations.live
        try:
            for mirror in self._mirrors_of(seen):
                await mirror.refresh(entries)
        except DependencyUnavailableError:
            # One that went meanwhile does not answer, and need not.
            await self._generations.refresh()
            if same(seen, self._generations.live):
                raise
            self._outage.is_on = False
            return False
        await self._generations.refresh()
        return same(seen, self._generations.live)

    def _mirrors_of(self, seen: Sequence[OpenGeneration]) -> list[Mirror]:
        if not same(seen, self._seen):
            self._seen, self._mirrors = seen, list(self._made(seen))
        return self._mirrors

    def _made(self, live: Sequence[OpenGeneration]) -> Iterator[Mirror]:
        models = {each.generation.model.name for each in live}
        ordered = sorted(live, key=_chunks_of)
        for chunks_of, group in groupby(ordered, key=_chunks_of):
            own = tuple(group)
            model = own[0].generation.model.name
            place = MirrorPlace(
                chunks_of=chunks_of,
                other_models=tuple(sorted(models - {model})),
                is_serving=any(e.generation.state is GenerationState.SERVING for e in own),
            )
            yield Mirror(
                outbox=self._outbox,
                vectors=staged(_together(own)),
                embedder=staged(own[0].embedder),
                sparse=self._sparse,
                max_chunks=self._max_chunks,
                place=place,
                outage=self._outage,
            )


def _together(group: Sequence[OpenGeneration]) -> WrittenTogether:
    collections = [each.vectors for each in group]
    return WrittenTogether(lambda: collections)


def _chunks_of(each: OpenGeneration) -> int:
    return each.generation.chunks_of
