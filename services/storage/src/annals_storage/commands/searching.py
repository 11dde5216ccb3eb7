"""Finds events by meaning and by words."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from annals_storage.commands.diversifying import Diversify
from annals_storage.commands.freshness import FRESHNESS_TIMEOUT, Freshness
from annals_storage.commands.ranking import RankEvents
from annals_storage.commands.reading_back import ReadBack
from annals_storage.domain.event_search import Search, SearchResult
from annals_storage.domain.indexing import OutboxKind
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.search import HitStore

MIRRORED_KINDS = (OutboxKind.EVENT, OutboxKind.CONVERSATION)


class SearchEvents:
    """Asks the mirror, trusts PostgreSQL, and does without the mirror if need be."""

    def __init__(
        self,
        *,
        rank: RankEvents,
        diversify: Diversify,
        read_back: ReadBack,
        views: HitStore,
        outbox: Outbox,
    ) -> None:
        self._rank, self._diversify, self._read_back = rank, diversify, read_back
        self._views = views
        self._freshness = Freshness(outbox, MIRRORED_KINDS)

    async def __call__(self, search: Search) -> SearchResult:
        """Raises DependencyUnavailableError when PostgreSQL does not answer.

        Raises ResourceNotFoundError when the branch asked for does not exist.
        """
        started = time.perf_counter()
        search = await self._with_view(search)
        tenant_id, rooms = search.scope.tenant_id, search.scope.conversation_ids
        fresh = await self._freshness.wait(tenant_id, rooms, search.freshness_seconds)
        degraded = [] if fresh else [FRESHNESS_TIMEOUT]
        ranked, backlog = await asyncio.gather(
            self._rank(search, degraded), self._freshness.backlog(tenant_id, rooms)
        )
        ranked = await self._diversify(search, ranked)
        hits = await self._read_back(search, ranked, degraded)
        return SearchResult(
            hits=hits,
            backlog=backlog,
            degraded=tuple(dict.fromkeys(degraded)),
            search_time_ms=(time.perf_counter() - started) * 1000,
        )

    async def _with_view(self, search: Search) -> Search:
        scope = search.scope
        if scope.branch is None:
            return search
        view = await self._views.get_view(scope.tenant_id, scope.conversation_ids[0], scope.branch)
        return replace(search, scope=replace(scope, view=view))
