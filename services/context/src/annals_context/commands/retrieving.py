"""What the calls that retrieve share: the search, and the events beside its hits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from annals_common.errors import AnnalsError, ResourceNotFoundError
from annals_context.commands.fetching import events_at
from annals_context.commands.together import first_error
from annals_context.domain.counting import Counter
from annals_context.domain.events import Event
from annals_context.domain.model import Hit
from annals_context.domain.passages import Place, place_of
from annals_context.ports import Caller, RetrievalScope, RetrievalStorage, SearchAnswer


class Retrieval:
    """Searches with the caller's credentials."""

    def __init__(self, storage: RetrievalStorage, counter_for: Callable[[str], Counter]) -> None:
        self.storage, self.counter_for = storage, counter_for

    async def search(
        self, caller: Caller, query: str, scope: RetrievalScope, *, limit: int
    ) -> SearchAnswer:
        """Return the hits that belong in a context. Raises what storage raises."""
        found = await self.storage.search_scope(caller, query, scope, limit=limit)
        return replace(found, hits=tuple(h for h in found.hits if h.event.belongs_in_context))

    async def neighbours(self, caller: Caller, hits: Sequence[Hit]) -> dict[Place, list[Event]]:
        """Return the events before and after each hit, by the place of the hit."""
        by_id: dict[str, set[int]] = {}
        for hit in hits:
            beside = {hit.event.seq - 1, hit.event.seq + 1} - {0}
            by_id.setdefault(hit.event.conversation_id, set()).update(beside)
        async with first_error(), asyncio.TaskGroup() as tasks:
            reads = [
                tasks.create_task(self._events(caller, conversation_id, seqs))
                for conversation_id, seqs in by_id.items()
            ]
        found = {place_of(event): event for read in reads for event in read.result()}
        return {place_of(hit.event): _beside(hit, found) for hit in hits}

    async def title(self, caller: Caller, conversation_id: str) -> str | None:
        """Return the title of a conversation; None when it is not there."""
        try:
            return (await self.storage.get_conversation(caller, conversation_id)).title
        except AnnalsError as error:
            if error.reason != ResourceNotFoundError.reason:
                raise
            return None

    async def _events(self, caller: Caller, conversation_id: str, seqs: set[int]) -> list[Event]:
        try:
            found = await events_at(self.storage, caller, conversation_id, branch=0, seqs=seqs)
        except AnnalsError as error:
            if error.reason != ResourceNotFoundError.reason:
                raise
            # Deleted since it was searched: what was found of it then has no neighbours.
            return []
        return [event for event in found if event.belongs_in_context]


def _beside(hit: Hit, found: Mapping[Place, Event]) -> list[Event]:
    conversation_id, seq = place_of(hit.event)
    places = ((conversation_id, seq - 1), (conversation_id, seq + 1))
    return [found[place] for place in places if place in found]
