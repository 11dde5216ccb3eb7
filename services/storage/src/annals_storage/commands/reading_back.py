"""Reads ranked events back from PostgreSQL, whose word is final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from annals_common.errors import ColdStorageUnavailableError
from annals_storage.domain.event_search import Hit, Search
from annals_storage.domain.fusion import Component, RankedEvent
from annals_storage.domain.hit_groups import Grouping, Ranked
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
        self, search: Search, ranked: Ranked, degraded: list[str]
    ) -> tuple[Hit, ...]:
        """Walk down the ranking until enough hits stand the test of PostgreSQL."""
        left: Sequence[RankedEvent] = ranked.events
        hits: list[Hit] = []
        while left and len(hits) < search.limit:
            taken = {hit.event.conversation_id for hit in hits}
            batch, left = ranked.next_batch(left, taken, search.limit - len(hits))
            hits += await self._hits_of(search, ranked, batch, degraded)
        if ranked.group_by is Grouping.CONVERSATION and not search.diversity:
            # Where the best of a conversation is gone, its next came after worse ones of others.
            hits.sort(key=lambda hit: -hit.score)
        return tuple(hits)

    async def _hits_of(
        self,
        search: Search,
        ranked: Ranked,
        batch: Sequence[RankedEvent],
        degraded: list[str],
    ) -> list[Hit]:
        wanted = [ranked.place(event) for event in batch]
        found = await self._found(search.scope, wanted, degraded)
        explain = ranked.explain if search.explain else _unexplained
        return [
            _hit(event, found[key], explain(event.event_id), ranked.group_size(event))
            for event, key in zip(batch, wanted, strict=True)
            if key in found and _still_in(search.scope, found[key])
        ]

    async def _found(
        self, scope: SearchScope, wanted: list[tuple[UUID, int]], degraded: list[str]
    ) -> Mapping[tuple[UUID, int], FoundEvent]:
        try:
            return await self._hits.get_hits(scope, wanted)
        except ColdStorageUnavailableError:
            degraded.append(COLD_STORAGE)
        found = await self._hits_as_stored.get_hits(scope, wanted)
        return {key: hit for key, hit in found.items() if hit.event.cold_segment_id is None}


def _unexplained(_event_id: UUID) -> tuple[Component, ...]:
    return ()


def _hit(
    ranked: RankedEvent, found: FoundEvent, components: tuple[Component, ...], group_size: int
) -> Hit:
    shift = len(found.event.body.label())
    return Hit(
        event=found.event,
        score=ranked.score,
        chunk_start=max(0, found.chunk_start - shift),
        chunk_end=max(0, found.chunk_end - shift),
        components=components,
        chunk_index=ranked.chunk_index,
        group_size=group_size,
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
