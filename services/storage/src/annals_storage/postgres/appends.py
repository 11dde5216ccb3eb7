"""Stores appends: many in one transaction, each all or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg import errors
from psycopg.rows import DictRow

from annals_common.errors import (
    AnnalsError,
    ConversationNotActiveError,
    FieldInvalidError,
    IdempotencyKeyReusedError,
    ResourceAlreadyExistsError,
    ResourceNotFoundError,
    SeqMismatchError,
    ToolCallNotFoundError,
)
from annals_common.principal import Actor
from annals_storage.domain.appending import Append, AppendResult
from annals_storage.domain.events import AppendedEvent, EventBody, EventStatus, NewEvent
from annals_storage.postgres.database import Database, Params, sql

MAX_ATTEMPTS = 5
_BODY_FIELDS = tuple(name for name in EventBody.__slots__ if name != "is_error")
_RACES = (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure)

Outcome = AppendResult | AnnalsError


class PostgresAppends:
    """The write path. `store` may be given appends to different conversations of one tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, appends: Sequence[Append]) -> list[Outcome]:
        """Store all in one transaction; return a result or an error for each, in order.

        A race with another writer (same new key, same new id) rolls back and is decided anew:
        the next attempt sees what the other one committed.
        """
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return await self._store(appends)
            except _RACES:
                continue
        return await self._store(appends)

    async def _store(self, appends: Sequence[Append]) -> list[Outcome]:
        params = append_params(appends)
        _, rows, *_ = await self._database.run(
            appends[0].tenant_id,
            (sql("append_lock"), params),
            *((statement, params) for statement in append_statements(appends)),
        )
        by_append = groupby(rows, key=itemgetter("index"))
        return [
            append_outcome(append, list(own))
            for append, (_, own) in zip(appends, by_append, strict=True)
        ]


def append_statements(appends: Sequence[Append]) -> list[str]:
    """Return what stores the appends, under their locks; the first one answers.

    Usage is a statement of its own: within the first it would cost every append a tenth.
    """
    has_usage = any(event.usage for append in appends for event in append.events)
    return [sql("append"), sql("append_usage")] if has_usage else [sql("append")]


def append_params(appends: Sequence[Append]) -> Params:
    """Return the parameters of append_lock.sql, append.sql and append_usage.sql."""
    requests = [_request(index, append) for index, append in enumerate(appends)]
    events = [
        _event(index, position, event)
        for index, append in enumerate(appends)
        for position, event in enumerate(append.events)
    ]
    return {
        "tenant_id": appends[0].tenant_id,
        "conversation_ids": sorted({append.conversation_id for append in appends}),
        "now": datetime.now(UTC),
        # One JSON text each: a quarter of the cost of an array for every column.
        "requests": _json(requests),
        "events": _json(events),
        "usage_event_ids": [
            event.event_id for append in appends for event in append.events if event.usage
        ],
    }


def _json(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def _request(index: int, append: Append) -> dict[str, Any]:
    return {
        "index": index,
        "conversation_id": str(append.conversation_id),
        "payload_hash": _bytea(append.payload_hash),
        "anonymous": append.anonymous,
        **_given(
            request_id=_text(append.request_id),
            expected_last_seq=append.expected_last_seq,
            agent_id=_text(append.agent_id),
            session_id=append.session_id,
            asked_branch=append.branch,
            bulk=append.bulk or None,
            **_actor(append.actor),
        ),
    }


def _actor(actor: Actor | None) -> dict[str, Any]:
    if actor is None:
        return {}
    return {
        "actor_key_id": _text(actor.api_key_id),
        "actor_user_id": actor.user_id,
        "actor_session_id": actor.session_id,
    }


def _event(index: int, position: int, event: NewEvent) -> dict[str, Any]:
    return {
        "request": index,
        "position": position,
        "event_id": str(event.event_id),
        "payload_hash": _bytea(event.payload_hash),
        "token_count": event.token_count,
        **_given(
            supplied=event.client_supplied_id or None,
            idempotency_key=event.idempotency_key,
            model=event.model,
            provider_response_id=event.provider_response_id,
            usage=asdict(event.usage) if event.usage else None,
            parent_event_id=_text(event.parent_event_id),
            metadata=event.metadata or None,
            event_time=event.event_time.isoformat() if event.event_time else None,
            status=None if event.status is EventStatus.COMPLETE else event.status.value,
            turn_id=event.turn_id,
        ),
        **_body(event.body),
    }


def _body(body: EventBody) -> dict[str, Any]:
    return _given(**{name: getattr(body, name) for name in _BODY_FIELDS}) | (
        {"is_error": True} if body.is_error else {}
    )


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _bytea(value: bytes) -> str:
    return f"\\x{value.hex()}"


def append_outcome(append: Append, rows: list[DictRow]) -> Outcome:
    """Map the rows of append.sql about one append."""
    first = rows[0]
    if first["verdict"] not in {"stored", "replayed"}:
        return _error(append, first)
    events = tuple(
        AppendedEvent(r["event_id"], r["seq"], r["replayed"], r["token_count"], r["created_at"])
        for r in rows
    )
    return AppendResult(append.conversation_id, events, _last_seq(first, events))


def _last_seq(row: DictRow, events: Sequence[AppendedEvent]) -> int:
    """Return where this append left the conversation; the rest of the group may be further."""
    own = [event.seq for event in events if not event.replayed]
    return max(own, default=row["last_seq"])


def _error(append: Append, row: DictRow) -> AnnalsError:
    return _ERRORS[row["verdict"]](append, row)


def _at(append: Append, row: DictRow) -> NewEvent:
    return append.events[row["problem_position"]]


def _field(append: Append, row: DictRow, name: str) -> str:
    return f"{append.path(row['problem_position'])}.{name}"


def _text(value: UUID | None) -> str | None:
    return str(value) if value else None


def _shown(value: UUID | None) -> str:
    return _text(value) or ""


_ERRORS: dict[str, Callable[[Append, DictRow], AnnalsError]] = {
    "conversation_not_found": lambda a, _: ResourceNotFoundError(
        "conversation", str(a.conversation_id)
    ),
    "agent_not_found": lambda a, _: ResourceNotFoundError("agent", _shown(a.agent_id)),
    "request_id_reused": lambda a, _: IdempotencyKeyReusedError(
        _shown(a.request_id), kind="request_id"
    ),
    "idempotency_key_reused": lambda a, r: IdempotencyKeyReusedError(
        _at(a, r).idempotency_key or "", resource_id=_shown(r["problem_event_id"])
    ),
    "branch_not_found": lambda a, _: ResourceNotFoundError("branch", str(a.branch)),
    "conversation_not_active": lambda a, r: ConversationNotActiveError(
        str(a.conversation_id), r["status"].upper()
    ),
    "seq_mismatch": lambda a, r: SeqMismatchError(
        expected=a.expected_last_seq or 0, actual=r["last_seq"]
    ),
    "event_exists": lambda _, r: ResourceAlreadyExistsError("event", _shown(r["problem_event_id"])),
    "parent_not_found": lambda a, r: FieldInvalidError(
        _field(a, r, "parent_event_id"),
        "names no earlier event of the conversation",
        _at(a, r).parent_event_id,
    ),
    "tool_call_not_found": lambda a, r: ToolCallNotFoundError(
        _field(a, r, "tool_result.tool_call_id"), _at(a, r).body.tool_call_id or ""
    ),
}
