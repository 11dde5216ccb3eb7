"""Reads ranked events back from PostgreSQL, whose word is final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from annals_common.errors import ColdStorageUnavailableError
from annals_storage.domain.event_search import Hit, Search
from annals_storage.domain.fusion import Component, RankedEvent, Ranking
from annals_storage.domain.rescoring import Rescored
from annals_storage.domain.search import FoundEvent, SearchScope
from annals_storage.ports.search import HitStore

COLD_STORAGE = "cold_storage"
"""Hits are missing whose words cannot be read now."""


class ReadBack:
    """Turns a ranking into hits that still exist and still belong into the scope."""

    def __init__(self, hits: HitStore, hits_as_stored: HitStore) -> None:
        """`hits_as_stored`: the same without the words of cold events, for when those are out."""
        self._hits, self._hits_as_stored = hits, hits_as_stored

    async def __call__(
        self, search: Search, ranking: Ranking | Rescored, degraded: list[str]
    ) -> tuple[Hit, ...]:
        """Walk down the ranking until enough hits stand the test of PostgreSQL."""
        # Without a threshold everything counts, opposite meanings (negative cosines) included.
        ranked = [e for e in ranking.events if not search.min_score or e.score >= search.min_score]
        hits: list[Hit] = []
        while ranked and len(hits) < search.limit:
            missing = search.limit - len(hits)
            batch, ranked = ranked[:missing], ranked[missing:]
            hits += await self._hits_of(search, ranking, batch, degraded)
        return tuple(hits)

    async def _hits_of(
        self,
        search: Search,
        ranking: Ranking | Rescored,
        batch: Sequence[RankedEvent],
        degraded: list[str],
    ) -> list[Hit]:
        wanted = [(ranked.event_id, ranked.chunk_index) for ranked in batch]
        found = await self._found(search.scope, wanted, degraded)
        explain = ranking.explain if search.explain else _unexplained
        return [
            _hit(ranked, found[ranked.event_id], explain(ranked.event_id))
            for ranked in batch
            if ranked.event_id in found and _still_in(search.scope, found[ranked.event_id])
        ]

    async def _found(
        self, scope: SearchScope, wanted: list[tuple[UUID, int]], degraded: list[str]
    ) -> Mapping[UUID, FoundEvent]:
        try:
            return await self._hits.get_hits(scope, wanted)
        except ColdStorageUnavailableError:
            degraded.append(COLD_STORAGE)
        found = await self._hits_as_stored.get_hits(scope, wanted)
        return {key: hit for key, hit in found.items() if hit.event.cold_segment_id is None}


def _unexplained(_event_id: UUID) -> tuple[Component, ...]:
    return ()


def _hit(ranked: RankedEvent, found: FoundEvent, components: tuple[Component, ...]) -> Hit:
    shift = len(found.event.body.label())
    return Hit(
        event=found.event,
        score=ranked.score,
        chunk_start=max(0, found.chunk_start - shift),
        chunk_end=max(0, found.chunk_end - shift),
        components=components,
    )


def _still_in(scope: SearchScope, found: FoundEvent) -> bool:
    """Whether the event, as it is now, is what was asked for; the mirror may be behind."""
    event = found.event
    memberships = (
        (scope.conversation_ids, event.conversation_id),
        (scope.agent_ids, found.agent_id),
        (scope.types, event.body.type),
        (scope.roles, event.body.role),
        (scope.tool_names, event.body.tool_name),
    )
    return (
        all(not allowed or value in allowed for allowed, value in memberships)
        and scope.user_id in (None, found.user_id)
        and scope.session_id in (None, found.session_id)
        and event.event_id not in scope.exclude_event_ids
        and (scope.start_time is None or event.event_time >= scope.start_time)
        and (scope.end_time is None or event.event_time < scope.end_time)
    )
