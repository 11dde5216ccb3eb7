"""One append: what is asked, what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from annals_common.principal import Actor
from annals_storage.domain.events import AppendedEvent, EventType, NewEvent


@dataclass(frozen=True, slots=True)
class Append:
    """Events for one conversation, stored all or none.

    `anonymous`: the conversation is created if it does not exist. `branch` None: the current one.
    `bulk`: nobody waits for it to be found; what somebody waits for is mirrored first.
    """

    tenant_id: UUID
    conversation_id: UUID
    events: tuple[NewEvent, ...]
    payload_hash: bytes
    request_id: UUID | None = None
    expected_last_seq: int | None = None
    anonymous: bool = False
    agent_id: UUID | None = None
    session_id: str | None = None
    branch: int | None = None
    actor: Actor | None = None
    event_path: str | None = None
    bulk: bool = False

    def path(self, position: int) -> str:
        """Return how the call names the event at a position: for errors."""
        return self.event_path or f"events[{position}]"

    def depends_on_order(self) -> bool:
        """Whether another append to the same conversation, just before, could change the answer."""
        return (
            self.anonymous
            or self.expected_last_seq is not None
            or any(
                event.parent_event_id or event.body.type is EventType.TOOL_RESULT
                for event in self.events
            )
        )

    def keys(self) -> frozenset[object]:
        """Everything of this append that must be unique."""
        supplied = {event.event_id for event in self.events if event.client_supplied_id}
        keyed = {
            (self.conversation_id, event.idempotency_key)
            for event in self.events
            if event.idempotency_key
        }
        request = {(self.conversation_id, self.request_id)} if self.request_id else set()
        return frozenset((*supplied, *keyed, *request))


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Where the events are, in the order of the append."""

    conversation_id: UUID
    events: tuple[AppendedEvent, ...]
    last_seq: int
