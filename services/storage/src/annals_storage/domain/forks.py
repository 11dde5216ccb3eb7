"""Copies of conversations."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from annals_common.principal import Actor
from annals_storage.domain.conversations import Conversation


class SourceIsColdError(Exception):
    """Words to copy are in cold storage and must be brought back first."""


@dataclass(frozen=True, slots=True)
class NewFork:
    """A copy to make of a branch's view, up to an event.

    `event_id` None: all of it. `branch` None: the current one. `title` None: the same.
    """

    conversation_id: UUID
    new_conversation_id: UUID
    request_hash: bytes
    actor: Actor
    event_id: UUID | None = None
    branch: int | None = None
    title: str | None = None
    request_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Fork:
    """The new conversation, and how many events were copied into it."""

    conversation: Conversation
    event_count: int
