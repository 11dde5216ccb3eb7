"""Changes of stored events, and the history they leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from annals_common.errors import (
    EventDeletedError,
    EventErasedError,
    FieldInvalidError,
    VersionMismatchError,
)
from annals_common.principal import Actor
from annals_storage.domain.events import Event, EventBody, NewEvent, Usage


class ObservationKind(StrEnum):
    """Why an observation was made, as stored."""

    STORE = "store"
    EDIT = "edit"
    REVERT = "revert"
    DELETE = "delete"
    RESTORE = "restore"


class EventIsColdError(Exception):
    """The words of an event are in cold storage and must be brought back first."""

    def __init__(self, event: Event) -> None:
        super().__init__(f"event {event.event_id} is in cold storage")
        self.conversation_id = event.conversation_id
        self.event_id = event.event_id


@dataclass(frozen=True, slots=True)
class TurnStore:
    """What a store of a turn asks for.

    `creates`: the conversation is made if it does not exist, with host_id, agent_id and
    session_id; with a host_id it is found by that, and conversation_id is for a new one.
    `payload_hash` covers the turn_id and what the event says.
    """

    tenant_id: UUID
    conversation_id: UUID
    turn_id: str
    event: NewEvent
    payload_hash: bytes
    actor: Actor
    creates: bool = False
    host_id: str | None = None
    agent_id: UUID | None = None
    session_id: str | None = None

    @property
    def idempotency_key(self) -> str | None:
        """Return the key of its event."""
        return self.event.idempotency_key


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """What became of a store of a turn."""

    event: Event
    observation_version: int
    replayed: bool
    superseded_event_id: UUID | None = None

    @property
    def created(self) -> bool:
        """Whether the store was the first of its event."""
        return self.observation_version == 1


@dataclass(frozen=True, slots=True)
class EventEdit:
    """What an edit asks for. `values`: fields of Event to replace, token_count with the body.

    `expected_version` None: whatever it is.
    """

    tenant_id: UUID
    event_id: UUID
    values: Mapping[str, Any]
    payload_hash: bytes
    actor: Actor
    idempotency_key: str | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class EditedEvent:
    """What became of an edit."""

    event: Event
    replayed: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """One version of an event. `event` is as this observation left it."""

    event: Event
    version: int
    kind: ObservationKind
    idempotency_key: str | None
    actor: Actor
    created_at: datetime


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """A page of the history of one event, newest first: of `event_id`, or of the newest event
    of a turn of a conversation.
    """

    event_id: UUID | None = None
    conversation_id: UUID | None = None
    turn_id: str | None = None
    before_version: int = 2**31 - 1
    limit: int = 100


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Observations, and whether older ones follow."""

    observations: tuple[Observation, ...]
    has_more: bool


def changed(event: Event, values: Mapping[str, Any], now: datetime) -> Event:
    """Return the next version of an event.

    Raises EventErasedError, EventDeletedError, FieldInvalidError when the body is of another
    type, EventIsColdError.
    """
    _check_changeable(event)
    body = values.get("body", event.body)
    if body.type is not event.body.type:
        raise FieldInvalidError(
            "event.body", f"must stay a {event.body.type.value}, as it was stored", body.type.value
        )
    if event.cold_segment_id is not None:
        raise EventIsColdError(event)
    return replace(event, **values, version=event.version + 1, edited_at=now)


def check_call_kept(event: Event, body: EventBody) -> None:
    """Refuse a body with another tool_call_id. Raises FieldInvalidError."""
    if body.tool_call_id != event.body.tool_call_id:
        raise FieldInvalidError(
            f"event.{body.type.value}.tool_call_id",
            "cannot be changed by an edit; append a call or a result of its own",
            body.tool_call_id,
        )


def _check_changeable(event: Event) -> None:
    if event.erased_at is not None:
        raise EventErasedError(str(event.event_id))
    if event.deleted_at is not None:
        raise EventDeletedError(str(event.event_id))


def check_version(event: Event, expected_version: int | None) -> None:
    """Raises VersionMismatchError."""
    if expected_version not in (None, event.version):
        raise VersionMismatchError(expected=expected_version or 0, actual=event.version)


def turn_values(new: NewEvent, former: Event) -> dict[str, Any]:
    """Return what a further store of a turn makes of its event: all of it but its place."""
    return {
        "body": new.body,
        "token_count": new.token_count,
        "model": new.model,
        "provider_response_id": new.provider_response_id,
        "usage": new.usage,
        "parent_event_id": new.parent_event_id,
        "metadata": new.metadata,
        "event_time": new.event_time or former.created_at,
        "status": new.status,
    }


@dataclass(frozen=True, slots=True)
class UsageChange:
    """What a change adds to the usage of a model; less than nothing where it takes away."""

    model: str
    event_count: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int

    def __bool__(self) -> bool:
        return any(
            (self.event_count, self.input_tokens, self.output_tokens, self.cached_input_tokens)
        )


def usage_changes(former: Event, latter: Event) -> list[UsageChange]:
    """Return the differences, one for each model; none where nothing changes."""
    before, after = former.model or "", latter.model or ""
    if before == after:
        found = [_usage_change(before, former.usage, latter.usage)]
    else:
        found = [
            _usage_change(before, former.usage, None),
            _usage_change(after, None, latter.usage),
        ]
    return [change for change in found if change]


def _usage_change(model: str, former: Usage | None, latter: Usage | None) -> UsageChange:
    before, after = former or Usage(), latter or Usage()
    return UsageChange(
        model=model,
        event_count=(latter is not None) - (former is not None),
        input_tokens=after.input_tokens - before.input_tokens,
        output_tokens=after.output_tokens - before.output_tokens,
        cached_input_tokens=after.cached_input_tokens - before.cached_input_tokens,
    )
