"""Versions of events: writes the next one, reads former ones. Within a caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from datetime import UTC
from typing import Protocol, TypeVar
from uuid import UUID

from psycopg import errors
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from annals_common.errors import (
    FieldInvalidError,
    IdempotencyKeyReusedError,
    ResourceNotFoundError,
    ToolCallNotFoundError,
)
from annals_common.principal import Actor
from annals_storage.domain.changing import Observation, ObservationKind, usage_changes
from annals_storage.domain.events import Event, EventBody, EventType
from annals_storage.postgres.database import Params, Transaction, sql
from annals_storage.postgres.rows import event_from

T = TypeVar("T")
MAX_ATTEMPTS = 5
MAX_PAGE_BYTES = 16 * 1024 * 1024
"""Of events in one page of history: far below what gRPC carries."""
_RACES = (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure)
_BODY_FIELDS = tuple(name for name in EventBody.__slots__ if name != "type")
_CONTENT_FIELDS = (
    "model", "provider_response_id", "parent_event_id", "token_count", "event_time", "version",
)  # fmt: skip


class Authored(Protocol):
    """A change on its way into history."""

    @property
    def payload_hash(self) -> bytes:
        """What a call with the same key must match."""

    @property
    def idempotency_key(self) -> str | None:
        """The key of the call."""

    @property
    def actor(self) -> Actor:
        """Who made the call."""


async def again_after_races(attempt: Callable[[], Awaitable[T]]) -> T:
    """Decide anew what lost a race with another writer: it sees what that one committed."""
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return await attempt()
        except _RACES:
            continue
    return await attempt()


async def observed_by_key(
    tx: Transaction, tenant_id: UUID, conversation_id: UUID, change: Authored
) -> Observation | None:
    """Return what an earlier call with the same key and payload made.

    Raises IdempotencyKeyReusedError when the payload was another.
    """
    if change.idempotency_key is None:
        return None
    params = {
        "tenant_id": tenant_id,
        "conversation_id": conversation_id,
        "idempotency_key": change.idempotency_key,
    }
    for row in await tx.run(sql("find_observation_by_key"), params):
        if row["payload_hash"] != change.payload_hash:
            raise IdempotencyKeyReusedError(
                change.idempotency_key, resource_id=str(row["event_id"])
            )
        return await _observation(tx, tenant_id, row["event_id"], row["version"])
    return None


async def _observation(
    tx: Transaction, tenant_id: UUID, event_id: UUID, version: int
) -> Observation:
    params = history_params(tenant_id, event_id, before_version=version + 1, limit=1)
    [row] = await tx.run(sql("list_observations"), params)
    return observation_from(row)


async def write_change(
    tx: Transaction,
    change: Authored,
    former: Event,
    latter: Event,
    *,
    tenant_id: UUID,
    kind: ObservationKind,
) -> Event:
    """Store the next version of an event with everything that goes with it; return it.

    The conversation is locked. Raises FieldInvalidError and ToolCallNotFoundError when the new
    content names what does not stand before the event.
    """
    body = await _checked_body(tx, tenant_id, latter)
    params = {
        **_snapshot(latter, body),
        "tenant_id": tenant_id,
        "kind": kind.value,
        "idempotency_key": change.idempotency_key,
        "payload_hash": change.payload_hash,
        "more_tokens": latter.token_count - former.token_count,
        "new_response_id": _new_response_id(former, latter),
        **actor_params(change.actor),
    }
    [row] = await tx.run(sql("change_event"), params)
    await _change_usage(tx, tenant_id, former, latter)
    return event_from(row)


async def _checked_body(tx: Transaction, tenant_id: UUID, latter: Event) -> EventBody:
    """Return the body with the tool's name, where it was left to the call."""
    is_result = latter.body.type is EventType.TOOL_RESULT
    if latter.parent_event_id is None and not is_result:
        return latter.body
    params = {
        "tenant_id": tenant_id,
        "conversation_id": latter.conversation_id,
        "seq": latter.seq,
        "parent_event_id": latter.parent_event_id,
        "tool_call_id": latter.body.tool_call_id if is_result else None,
    }
    [row] = await tx.run(sql("find_references"), params)
    if not row["parent_exists"]:
        raise FieldInvalidError(
            "event.parent_event_id",
            "names no earlier event of the conversation",
            latter.parent_event_id,
        )
    if not is_result:
        return latter.body
    if row["called_tool"] is None:
        raise ToolCallNotFoundError(
            "event.tool_result.tool_call_id", latter.body.tool_call_id or ""
        )
    return replace(latter.body, tool_name=latter.body.tool_name or row["called_tool"])


def _snapshot(event: Event, body: EventBody) -> Params:
    return {
        **{name: getattr(body, name) for name in _BODY_FIELDS},
        **{name: getattr(event, name) for name in _CONTENT_FIELDS},
        "conversation_id": event.conversation_id,
        "event_id": event.event_id,
        "seq": event.seq,
        "usage": Jsonb(asdict(event.usage)) if event.usage else None,
        "metadata": Jsonb(event.metadata) if event.metadata else None,
        "status": event.status.value,
        "now": event.edited_at,
    }


def _new_response_id(former: Event, latter: Event) -> str | None:
    is_new = latter.provider_response_id != former.provider_response_id
    return latter.provider_response_id if is_new else None


async def _change_usage(tx: Transaction, tenant_id: UUID, former: Event, latter: Event) -> None:
    changes = usage_changes(former, latter)
    if not changes:
        return
    params = {
        "tenant_id": tenant_id,
        "conversation_id": former.conversation_id,
        "day": former.created_at.astimezone(UTC).date(),
        "changes": json.dumps([asdict(change) for change in changes]),
    }
    await tx.run(sql("change_usage"), params)


def actor_params(actor: Actor) -> Params:
    """Return who acted, as the columns of observations."""
    return {name: getattr(actor, name) for name in Actor.__slots__}


def history_params(tenant_id: UUID, event_id: UUID, *, before_version: int, limit: int) -> Params:
    """Return the parameters of list_observations.sql."""
    return {
        "tenant_id": tenant_id,
        "event_id": event_id,
        "before_version": before_version,
        "limit": limit,
        "max_bytes": MAX_PAGE_BYTES,
    }


def observation_from(row: DictRow) -> Observation:
    """Map a row of list_observations.sql."""
    version: int = row["observed_version"]
    return Observation(
        event=event_from({**row, "version": version}),
        version=version,
        kind=ObservationKind(row["observed_kind"]),
        idempotency_key=row["observed_key"],
        actor=Actor(row["actor_key_id"], row["actor_user_id"], row["actor_session_id"]),
        created_at=row["observed_at"],
    )


def visible_event(rows: list[DictRow], event_id: UUID) -> Event:
    """Return the event of a row with its conversation_deleted_at. Raises ResourceNotFoundError."""
    if not rows or rows[0]["conversation_deleted_at"] is not None:
        raise ResourceNotFoundError("event", str(event_id))
    return event_from(rows[0])
