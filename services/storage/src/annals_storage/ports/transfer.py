"""What exports and imports need from the outside world."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from uuid import UUID

from annals_storage.domain.events import Event, EventPage
from annals_storage.domain.transfer_history import Reference
from annals_storage.domain.transfer_lines import Kind

Row = dict[str, Any]


class TransferReader(Protocol):
    """Reads a conversation page by page, all of it as of one moment."""

    async def conversation(self, conversation_id: UUID) -> Row | None:
        """Return its columns, deleted or not."""

    async def events(
        self, conversation_id: UUID, *, after_seq: int, branch: int | None
    ) -> EventPage:
        """Return one page by seq: of a branch what is in view, of None everything there is."""

    async def observations(self, event_ids: Sequence[UUID], *, after: tuple[int, int]) -> list[Row]:
        """Return one page by (`place` in event_ids from 1, version), with `payload` or None."""

    async def rows(self, kind: Kind, conversation_id: UUID, last: Row | None) -> list[Row]:
        """Return the page after a row; empty after the last."""

    async def has_branch(self, conversation_id: UUID, branch: int) -> bool:
        """Whether the conversation has the branch."""


class TransferWriter(TransferReader, Protocol):
    """Writes conversations in one transaction."""

    async def has_agent(self, agent_id: UUID) -> bool:
        """Whether the agent exists."""

    async def known(self, kind: Kind, ids: Sequence[str]) -> str | None:
        """Return one of the ids that exists already."""

    async def insert(self, kind: Kind, conversation_id: UUID, rows_json: str) -> None:
        """Store rows of one kind. Raises ResourceAlreadyExistsError."""

    async def unfounded(
        self, conversation_id: UUID, references: Sequence[Reference]
    ) -> tuple[int, str] | None:
        """Return the first (line, field) that names what does not stand before it."""

    async def problem(self, conversation_id: UUID) -> tuple[str, str] | None:
        """Return a reference (its field, its value) to what the conversation does not hold."""


class TransferStore(Protocol):
    """Where conversations are read and written whole."""

    def snapshot(self, tenant_id: UUID) -> AbstractAsyncContextManager[TransferReader]:
        """Read as of one moment."""

    def importing(self, tenant_id: UUID) -> AbstractAsyncContextManager[TransferWriter]:
        """Commit at the end of the block; an exception leaves nothing.

        Raises ConversationRaceError when another import stored one of its conversations.
        """


class ConversationRaceError(Exception):
    """Another transaction stored the conversation first; look again."""


class FillsEvents(Protocol):
    """Brings the words of events from wherever they are."""

    async def fill(self, tenant_id: UUID, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events, in order, with their words."""
