"""The time a search asks about, seen from when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from annals_storage.commands.remembering import utc_now
from annals_storage.domain.asked_times import Asked, asked_time
from annals_storage.domain.event_search import Search
from annals_storage.domain.search import SearchScope
from annals_storage.ports.search import RescoringStore


class AskedTimes:
    """Reads times in queries; only those that are relative need to know when "now" is."""

    def __init__(self, store: RescoringStore, *, now: Callable[[], datetime] = utc_now) -> None:
        self._store, self._now = store, now

    async def __call__(self, search: Search) -> Asked | None:
        """Return the time asked about, or None. Raises DependencyUnavailableError."""
        said = asked_time(search.query)
        if said is None:
            return None
        if not said.is_relative:
            return said.at(self._now())
        return said.at(search.reference_time or await self._reference(search.scope))

    async def _reference(self, scope: SearchScope) -> datetime:
        """Return when the conversations asked for stand, else the present.

        A conversation has a time of its own: one that was imported is spoken of as of its end,
        and in one that goes on that is the present. All conversations of a tenant have none.
        """
        if not scope.conversation_ids:
            return self._now()
        newest = await self._store.get_newest_time(scope.tenant_id, scope.conversation_ids)
        return newest or self._now()
