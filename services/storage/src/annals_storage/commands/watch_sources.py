"""Ways of watches through the tables: a conversation's events by seq, an agent's by transaction."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from annals_common.errors import (
    DependencyUnavailableError,
    FieldInvalidError,
    ResourceNotFoundError,
)
from annals_storage.domain.events import Event, EventQuery
from annals_storage.domain.watching import Arrivals, Part, Place, WatchPage
from annals_storage.ports.conversations import ConversationStore
from annals_storage.ports.events import EventStore
from annals_storage.ports.live import WatchStore

PAGE_EVENTS = 200
PAGE_TEXT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What to watch: a conversation, of it a branch (None: every one), or an agent.

    `cursor`: where to go on, as an earlier answer said; `incarnation` belongs to it. `after_seq`:
    where to begin in a conversation; None: now.
    """

    tenant_id: UUID
    conversation_id: UUID | None = None
    agent_id: UUID | None = None
    branch: int | None = None
    after_seq: int | None = None
    incarnation: str = ""
    cursor: tuple[int, UUID | None, int] | None = None


class AgentRegistry(Protocol):
    """Where agents are looked up."""

    async def get_agent(self, tenant_id: UUID, agent_id: UUID) -> object:
        """Raises ResourceNotFoundError."""


@dataclass(frozen=True, slots=True)
class WatchStores:
    """What watches read."""

    conversations: ConversationStore
    events: EventStore
    agents: AgentRegistry
    watch: WatchStore


class ConversationSource:
    """By seq: events of a conversation are numbered under its row lock, held until the commit."""

    def __init__(self, stores: WatchStores, request: WatchRequest, conversation_id: UUID) -> None:
        self._stores, self._request, self._id = stores, request, conversation_id
        self._seq = 0
        self._incarnation = ""

    async def begin(self) -> WatchPage:
        """Return the empty page to begin with. Raises ResourceNotFoundError, FieldInvalidError."""
        mark = await self._stores.watch.mark()
        self._incarnation = mark.incarnation
        head = await self._head()
        await self._check_branch()
        self._seq = head if self._request.after_seq is None else self._request.after_seq
        if self._request.cursor is not None:
            self._seq = self._request.cursor[2]
            _refuse_other_database(self._request, mark.incarnation, holds=self._seq <= head)
        return self._page()

    async def look(self) -> WatchPage:
        """Return what came since, perhaps nothing."""
        head = await self._head()
        if head <= self._seq:
            return self._page()
        found = await self._stores.events.page(
            self._request.tenant_id, self._query(self._seq, head + 1)
        )
        self._seq = found.events[-1].seq if found.has_more else head
        return self._page(found.events, more=found.has_more)

    async def _head(self) -> int:
        found = await self._stores.conversations.get(self._request.tenant_id, self._id)
        if found is None or found.deleted_at is not None:
            raise ResourceNotFoundError("conversation", str(self._id))
        return found.last_seq

    async def _check_branch(self) -> None:
        """The page raises when there is no such branch."""
        await self._stores.events.page(self._request.tenant_id, self._query(0, 2))

    def _query(self, after_seq: int, before_seq: int) -> EventQuery:
        return EventQuery(
            conversation_id=self._id,
            after_seq=after_seq,
            before_seq=before_seq,
            branch=self._request.branch,
            all_branches=self._request.branch is None,
            limit=PAGE_EVENTS,
        )

    def _page(self, events: tuple[Event, ...] = (), *, more: bool = False) -> WatchPage:
        return WatchPage(events, (self._incarnation, "0", "", str(self._seq)), more)


class AgentSource:
    """By transaction, and only those below the oldest one still running: see watch_agent.sql."""

    def __init__(self, stores: WatchStores, request: WatchRequest, agent_id: UUID) -> None:
        self._stores, self._request, self._agent_id = stores, request, agent_id
        self._place = Place(0)
        self._incarnation = ""
        self._parts: deque[Part] = deque()

    async def begin(self) -> WatchPage:
        """Return the empty page to begin with. Raises ResourceNotFoundError, FieldInvalidError."""
        await self._stores.agents.get_agent(self._request.tenant_id, self._agent_id)
        mark = await self._stores.watch.mark()
        self._incarnation = mark.incarnation
        self._place = Place(mark.horizon - 1)
        if self._request.cursor is not None:
            self._place = Place(*self._request.cursor)
            holds = self._place.xid < mark.horizon
            _refuse_other_database(self._request, mark.incarnation, holds=holds)
        return self._page()

    async def look(self) -> WatchPage:
        """Return what came since, perhaps nothing."""
        if self._parts:
            return await self._part_page(self._parts[0])
        arrivals = await self._stores.watch.arrivals(
            self._request.tenant_id, self._agent_id, self._place
        )
        if arrivals.mark.incarnation != self._incarnation:
            raise DependencyUnavailableError("the database this watch began with")
        if arrivals.large_xid is not None:
            return await self._open_large(arrivals.large_xid)
        return await self._arrivals_page(arrivals)

    async def _arrivals_page(self, arrivals: Arrivals) -> WatchPage:
        taken = _fitting(arrivals)
        whole = taken == len(arrivals.rows)
        chosen = arrivals.rows[:taken]
        found = await self._stores.events.get(
            self._request.tenant_id, [each.event_id for each in chosen]
        )
        self._place = Place(arrivals.until) if whole else chosen[-1].place
        events = (found.get(each.event_id) for each in chosen)
        visible = tuple(event for event in events if event is not None and _is_visible(event))
        return self._page(visible, more=arrivals.cut or not whole)

    async def _open_large(self, xid: int) -> WatchPage:
        parts = await self._stores.watch.parts(self._request.tenant_id, self._agent_id, xid)
        self._parts.extend(part for part in parts if self._is_ahead(part))
        if not self._parts:
            self._place = Place(xid)
        return self._page(more=True)

    def _is_ahead(self, part: Part) -> bool:
        place = self._place
        if place.xid != part.xid or place.conversation_id is None:
            return True
        return (part.conversation_id, part.last_seq) > (place.conversation_id, place.seq)

    async def _part_page(self, part: Part) -> WatchPage:
        place, after_seq = self._place, part.first_seq - 1
        if (place.xid, place.conversation_id) == (part.xid, part.conversation_id):
            after_seq = place.seq
        query = EventQuery(
            conversation_id=part.conversation_id,
            after_seq=after_seq,
            before_seq=part.last_seq + 1,
            all_branches=True,
            limit=PAGE_EVENTS,
        )
        try:
            found = await self._stores.events.page(self._request.tenant_id, query)
        except ResourceNotFoundError:
            return self._after_part(part, (), part.last_seq)
        seq = found.events[-1].seq if found.has_more else part.last_seq
        return self._after_part(part, found.events, seq)

    def _after_part(self, part: Part, events: tuple[Event, ...], seq: int) -> WatchPage:
        self._place = Place(part.xid, part.conversation_id, seq)
        if seq >= part.last_seq:
            self._parts.popleft()
        if not self._parts:
            self._place = Place(part.xid)
        return self._page(events, more=True)

    def _page(self, events: tuple[Event, ...] = (), *, more: bool = False) -> WatchPage:
        place = self._place
        conversation = str(place.conversation_id) if place.conversation_id else ""
        cursor = (self._incarnation, str(place.xid), conversation, str(place.seq))
        return WatchPage(events, cursor, more)


def _fitting(arrivals: Arrivals) -> int:
    """Return how many of the rows make one page, at least one."""
    size = 0
    for count, row in enumerate(arrivals.rows):
        size += row.text_bytes
        if count >= PAGE_EVENTS or (count and size > PAGE_TEXT_BYTES):
            return count
    return len(arrivals.rows)


def _is_visible(event: Event) -> bool:
    return event.deleted_at is None and event.erased_at is None


def _refuse_other_database(request: WatchRequest, incarnation: str, *, holds: bool) -> None:
    """Events after a restore may stand where others stood before it: no token spans that."""
    if not holds or request.incarnation != incarnation:
        raise FieldInvalidError(
            "resume_token",
            "is of the time before the database was restored; read what is there by ListEvents, "
            "and watch anew without a token",
        )
