"""What erasure, retention and cold storage need from the outside world."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from annals_storage.domain.cold_storage import ColdWords, Segment, StoredWords
from annals_storage.domain.erasure import Counts, ErasureScope, Receipt
from annals_storage.domain.retention import MaintenanceDue, RetentionPolicy
from annals_storage.ports.paging import PageCursor


class ReceiptStore(Protocol):
    """Where receipts are kept."""

    async def begin(self, tenant_id: UUID, receipt: Receipt) -> Receipt:
        """Insert it, or return the unfinished one of the same scope and subject."""

    async def unfinished(self, tenant_id: UUID, scope: ErasureScope, subject: str) -> bool:
        """Whether an erasure of this subject was interrupted."""

    async def list_unfinished(self, tenant_id: UUID, *, limit: int) -> list[Receipt]:
        """Return interrupted erasures, oldest first."""

    async def add(self, tenant_id: UUID, receipt_id: UUID, counts: Counts) -> None:
        """Add to the counts of an unfinished receipt."""

    async def finish(self, tenant_id: UUID, receipt_id: UUID, at: datetime) -> Receipt:
        """Complete it with its digest; return it as stored."""

    async def get(self, tenant_id: UUID, receipt_id: UUID) -> Receipt | None:
        """Return it as stored."""

    async def page(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[Receipt]:
        """Return one page, newest first."""


class ErasureStore(Protocol):
    """What PostgreSQL forgets. Counts go to the receipt in the transaction that erases."""

    async def conversation_of(self, tenant_id: UUID, event_id: UUID) -> UUID | None:
        """Return where an event is, erased or not."""

    async def exists(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Whether the conversation exists, deleted or not."""

    async def copies_in_forks(
        self, tenant_id: UUID, conversation_id: UUID, event_id: UUID | None = None
    ) -> int:
        """Return how many events of forks are copies of the event, or of any in it."""

    async def erase_event(self, tenant_id: UUID, receipt_id: UUID, event_id: UUID) -> bool:
        """Erase it; False: its words are in cold storage and must be brought back first."""

    async def hide(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Mark the conversation deleted, so that nothing is added to it any more."""

    async def erase_events(
        self, tenant_id: UUID, receipt_id: UUID, conversation_id: UUID, *, limit: int
    ) -> int:
        """Erase that many events of a conversation, rows and all; return how many there were."""

    async def erase_conversation(
        self, tenant_id: UUID, receipt_id: UUID, conversation_id: UUID
    ) -> None:
        """Erase the conversation with everything that is left in it."""

    async def conversations_of_user(
        self, tenant_id: UUID, user_id: str, *, limit: int
    ) -> list[UUID]:
        """Return some conversations of the user and of the sessions merged into the user."""

    async def conversations_of_tenant(self, tenant_id: UUID, *, limit: int) -> list[UUID]:
        """Return some conversations."""

    async def erase_user(self, tenant_id: UUID, receipt_id: UUID, user_id: str) -> None:
        """Erase what names the user outside of the user's conversations."""

    async def lock_out(self, tenant_id: UUID, receipt_id: UUID) -> list[UUID]:
        """Erase the tenant's keys; return their ids."""

    async def erase_tenant(self, tenant_id: UUID, receipt_id: UUID) -> bool:
        """Erase what is left of a tenant; False: conversations were added meanwhile."""

    async def remaining_of_event(self, tenant_id: UUID, event_id: UUID) -> Counts:
        """Count what is left of an event."""

    async def remaining_of_conversation(self, tenant_id: UUID, conversation_id: UUID) -> Counts:
        """Count what is left of a conversation."""

    async def remaining_of_user(self, tenant_id: UUID, user_id: str) -> Counts:
        """Count what is left of a user."""

    async def remaining_of_tenant(self, tenant_id: UUID) -> Counts:
        """Count what is left of a tenant, receipts aside."""


class MirrorErasure(Protocol):
    """Has the vector engine forget. The outbox has it forget again."""

    async def erase_event(self, tenant_id: UUID, conversation_id: UUID, event_id: UUID) -> Counts:
        """Remove the points of an event; return the counts."""

    async def erase_conversation(self, tenant_id: UUID, conversation_id: UUID) -> Counts:
        """Remove the points of a conversation; return the counts."""

    async def erase_tenant(self, tenant_id: UUID) -> Counts:
        """Remove the points of a tenant; return the counts."""


class MirrorCount(Protocol):
    """Counts what the vector engine holds, exactly."""

    async def count_event(self, tenant_id: UUID, event_id: UUID) -> int:
        """Return how many points an event has."""

    async def count_conversation(self, tenant_id: UUID, conversation_id: UUID) -> int:
        """Return how many points a conversation has."""

    async def count_user(self, tenant_id: UUID, user_id: str) -> int:
        """Return how many points are ascribed to a user."""

    async def count_tenant(self, tenant_id: UUID) -> int:
        """Return how many points a tenant has."""


class ObjectStore(Protocol):
    """Files or objects under one root. Paths are relative, with slashes.

    Every method raises DependencyUnavailableError("cold storage") when the store does not answer.
    """

    async def write(self, path: str, data: bytes) -> None:
        """Write it durably, in whole."""

    async def read(self, path: str) -> bytes | None:
        """Return the bytes, or None when there is no such object."""

    async def delete(self, path: str) -> None:
        """Remove it, if it is there."""

    async def names(self, folder: str) -> list[str]:
        """Return the names right below a folder; none when there is no such folder."""


class ColdSession(Protocol):
    """One transaction that holds a conversation's cold storage for itself."""

    async def next_words(
        self, *, until_seq: int | None, max_events: int, max_bytes: int
    ) -> list[StoredWords]:
        """Return the oldest events whose words are still in PostgreSQL, at least one if any."""

    async def store(self, segment: Segment, words: Sequence[StoredWords]) -> bool:
        """Take the words out of PostgreSQL; False: an event changed since it was read."""

    async def segments(self) -> list[Segment]:
        """Return the conversation's segments, oldest first."""

    async def segments_of(self, event_ids: Sequence[UUID]) -> list[Segment]:
        """Return the segments that hold these events."""

    async def put_back(self, segment: Segment, words: Sequence[ColdWords]) -> int:
        """Put the words back, forget the segment; return how many events got theirs."""


class ColdSegments(Protocol):
    """Which words are in which object."""

    def session(
        self, tenant_id: UUID, conversation_id: UUID
    ) -> AbstractAsyncContextManager[ColdSession]:
        """Open a session; it commits at the end of the block and rolls back on an exception."""

    async def get(self, tenant_id: UUID, segment_ids: Collection[UUID]) -> dict[UUID, Segment]:
        """Return segments by id."""

    async def exists(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Whether the conversation exists, deleted or not."""

    async def words_now(
        self, tenant_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, ColdWords | UUID]:
        """Return, of events as they are now, their words, or the segment that holds them."""


class RetentionStore(Protocol):
    """Policies, and what they make due."""

    async def set(self, tenant_id: UUID, policy: RetentionPolicy) -> RetentionPolicy:
        """Raises ResourceNotFoundError without the agent."""

    async def get(self, tenant_id: UUID, agent_id: UUID | None) -> RetentionPolicy | None:
        """Return the policy of an agent, or of the tenant."""

    async def page(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[RetentionPolicy]:
        """Return one page: the tenant's own, then by agent id."""

    async def delete(self, tenant_id: UUID, agent_id: UUID | None) -> bool:
        """Whether there was one."""

    def tenant_lock(self, tenant_id: UUID) -> AbstractAsyncContextManager[bool]:
        """Hold the tenant for one maintenance; False: another one holds it."""

    async def archive(self, tenant_id: UUID, now: datetime, *, limit: int) -> int:
        """Archive some conversations that are due; return how many."""

    async def due(
        self,
        tenant_id: UUID,
        kind: MaintenanceDue,
        now: datetime,
        *,
        after: UUID | None,
        limit: int,
    ) -> list[UUID]:
        """Return conversations due, by id, after an id."""

    async def count_due(self, tenant_id: UUID, kind: MaintenanceDue, now: datetime) -> int:
        """Return how many conversations are due."""

    async def expire_logs(self, tenant_id: UUID, now: datetime, *, limit: int) -> Counts:
        """Remove some expired provider logs and searches; return the counts of each kind."""

    async def count_expired_logs(self, tenant_id: UUID, now: datetime) -> Counts:
        """Return how many provider logs and searches have expired."""
