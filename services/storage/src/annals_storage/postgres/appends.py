"""Stores appends: many in one transaction, each all or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg import errors
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

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
from annals_storage.domain.appending import Append, AppendResult
from annals_storage.domain.events import AppendedEvent, NewEvent, Usage
from annals_storage.postgres.database import Database, Params, sql

MAX_ATTEMPTS = 5
_RACES = (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure)

Outcome = AppendResult | AnnalsError
Column = Callable[[NewEvent], Any]

_EVENT_COLUMNS: dict[str, Column] = {
    "event_id": lambda e: e.event_id,
    "supplied": lambda e: e.client_supplied_id or None,
    "idempotency_key": lambda e: e.idempotency_key,
    "payload_hash": lambda e: e.payload_hash,
    "type": lambda e: e.body.type.value,
    "role": lambda e: e.body.role.value if e.body.role else None,
    "content": lambda e: e.body.content,
    "author_name": lambda e: e.body.author_name,
    "tool_call_id": lambda e: e.body.tool_call_id,
    "tool_name": lambda e: e.body.tool_name,
    "tool_input": lambda e: e.body.tool_input,
    "tool_result": lambda e: e.body.tool_result,
    "is_error": lambda e: e.body.is_error,
    "error_type": lambda e: e.body.error_type,
    "error_message": lambda e: e.body.error_message,
    "model": lambda e: e.model,
    "provider_response_id": lambda e: e.provider_response_id,
    "usage": lambda e: _jsonb_usage(e.usage),
    "parent_event_id": lambda e: e.parent_event_id,
    "metadata": lambda e: Jsonb(e.metadata) if e.metadata else None,
    "token_count": lambda e: e.token_count,
    "event_time": lambda e: e.event_time,
}


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
        params = _params(appends)
        _, rows = await self._database.run(
            appends[0].tenant_id, (sql("append_lock"), params), (sql("append"), params)
        )
        by_append = groupby(rows, key=itemgetter("index"))
        return [
            _outcome(append, list(own)) for append, (_, own) in zip(appends, by_append, strict=True)
        ]


def _params(appends: Sequence[Append]) -> Params:
    numbered = [(i, j, e) for i, a in enumerate(appends) for j, e in enumerate(a.events)]
    events = [event for _, _, event in numbered]
    columns = {f"e_{name}": _column(map(read, events)) for name, read in _EVENT_COLUMNS.items()}
    return {
        "tenant_id": appends[0].tenant_id,
        "conversation_ids": sorted({append.conversation_id for append in appends}),
        "now": datetime.now(UTC),
        "r_index": list(range(len(appends))),
        "r_conversation_id": [append.conversation_id for append in appends],
        "r_request_id": _column(append.request_id for append in appends),
        "r_payload_hash": [append.payload_hash for append in appends],
        "r_expected_last_seq": _column(append.expected_last_seq for append in appends),
        "r_anonymous": [append.anonymous for append in appends],
        "r_agent_id": _column(append.agent_id for append in appends),
        "r_session_id": _column(append.session_id for append in appends),
        "e_request": [index for index, _, _ in numbered],
        "e_position": [position for _, position, _ in numbered],
        **columns,
    }


def _column(values: Iterable[Any]) -> list[Any] | None:
    # unnest() pads missing arrays with NULL, so a column without values costs nothing.
    column = list(values)
    return column if any(value is not None for value in column) else None


def _jsonb_usage(usage: Usage | None) -> Jsonb | None:
    return Jsonb(asdict(usage)) if usage else None


def _outcome(append: Append, rows: list[DictRow]) -> Outcome:
    first = rows[0]
    if first["verdict"] not in {"stored", "replayed"}:
        return _error(append, first)
    events = tuple(
        AppendedEvent(r["event_id"], r["seq"], r["replayed"], r["token_count"], r["created_at"])
        for r in rows
    )
    return AppendResult(append.conversation_id, events, first["last_seq"])


def _error(append: Append, row: DictRow) -> AnnalsError:
    return _ERRORS[row["verdict"]](append, row)


def _at(append: Append, row: DictRow) -> NewEvent:
    return append.events[row["problem_position"]]


def _field(row: DictRow, name: str) -> str:
    return f"events[{row['problem_position']}].{name}"


def _text(value: UUID | None) -> str:
    return str(value) if value else ""


_ERRORS: dict[str, Callable[[Append, DictRow], AnnalsError]] = {
    "conversation_not_found": lambda a, _: ResourceNotFoundError(
        "conversation", str(a.conversation_id)
    ),
    "agent_not_found": lambda a, _: ResourceNotFoundError("agent", _text(a.agent_id)),
    "request_id_reused": lambda a, _: IdempotencyKeyReusedError(
        _text(a.request_id), kind="request_id"
    ),
    "idempotency_key_reused": lambda a, r: IdempotencyKeyReusedError(
        _at(a, r).idempotency_key or "", resource_id=_text(r["problem_event_id"])
    ),
    "conversation_not_active": lambda a, r: ConversationNotActiveError(
        str(a.conversation_id), r["status"].upper()
    ),
    "seq_mismatch": lambda a, r: SeqMismatchError(
        expected=a.expected_last_seq or 0, actual=r["last_seq"]
    ),
    "event_exists": lambda _, r: ResourceAlreadyExistsError("event", _text(r["problem_event_id"])),
    "parent_not_found": lambda a, r: FieldInvalidError(
        _field(r, "parent_event_id"),
        "names no earlier event of the conversation",
        _at(a, r).parent_event_id,
    ),
    "tool_call_not_found": lambda a, r: ToolCallNotFoundError(
        _field(r, "tool_result.tool_call_id"), _at(a, r).body.tool_call_id or ""
    ),
}
