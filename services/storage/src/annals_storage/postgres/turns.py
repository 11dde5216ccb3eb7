"""Stores turns: the first store appends an event, each further one changes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg import errors
from psycopg.rows import DictRow

from annals_common.errors import (
    AnnalsError,
    ConversationNotActiveError,
    FieldInvalidError,
    ResourceNotFoundError,
)
from annals_common.ids import uuid7
from annals_storage.domain.appending import Append
from annals_storage.domain.changing import (
    Observation,
    ObservationKind,
    StoredTurn,
    TurnStore,
    changed,
    turn_values,
)
from annals_storage.domain.events import Event, EventType
from annals_storage.postgres.appends import append_outcome, append_params, append_statements
from annals_storage.postgres.database import Database, Transaction, sql
from annals_storage.postgres.event_versions import (
    again_after_races,
    observed_by_key,
    visible_event,
    write_change,
)
from annals_storage.postgres.rows import event_from

_BY_HOST_ID = """
SELECT conversation_id FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND host_id = %(host_id)s
"""
_ANSWERED = """
SELECT EXISTS (
  SELECT FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.tool_call_id = %(tool_call_id)s AND e.type = 'tool_result' AND e.seq > %(seq)s
) AS found
"""


class PostgresTurns:
    """Turns of a tenant, each stored under the lock of its conversation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, turn: TurnStore) -> StoredTurn:
        """Store a turn, once for each idempotency key.

        Raises ResourceNotFoundError, ResourceAlreadyExistsError, IdempotencyKeyReusedError,
        ConversationNotActiveError, EventErasedError, EventDeletedError, FieldInvalidError,
        ToolCallNotFoundError, EventIsColdError.
        """
        try:
            return await again_after_races(lambda: self._store(turn))
        except errors.ForeignKeyViolation as error:
            raise ResourceNotFoundError("agent", str(turn.agent_id)) from error

    async def _store(self, turn: TurnStore) -> StoredTurn:
        async with self._database.transaction(turn.tenant_id) as tx:
            conversation = await _locked_conversation(tx, turn)
            turn = replace(turn, conversation_id=conversation["conversation_id"])
            seen = await observed_by_key(tx, turn.tenant_id, turn.conversation_id, turn)
            if seen is not None:
                return await _replay(tx, turn.tenant_id, seen)
            if conversation["status"] != "active":
                raise ConversationNotActiveError(
                    str(turn.conversation_id), conversation["status"].upper()
                )
            return await _store_anew(tx, turn, branch=conversation["current_branch"])


async def _replay(tx: Transaction, tenant_id: UUID, seen: Observation) -> StoredTurn:
    superseded = await _superseded_by(tx, tenant_id, seen.event.event_id)
    return StoredTurn(seen.event, seen.version, replayed=True, superseded_event_id=superseded)


async def _locked_conversation(tx: Transaction, turn: TurnStore) -> DictRow:
    """Find or create the conversation and lock it. Raises ResourceNotFoundError."""
    params = {
        "tenant_id": turn.tenant_id,
        "conversation_id": turn.conversation_id,
        "host_id": turn.host_id,
        "agent_id": turn.agent_id,
        "session_id": turn.session_id,
    }
    if turn.host_id is not None:
        params["conversation_id"] = await _host_conversation(tx, params)
    elif turn.creates:
        await tx.run(sql("create_turn_conversation"), params)
    rows = await tx.run(sql("lock_turn_conversation"), params)
    if not rows or rows[0]["deleted_at"] is not None:
        raise ResourceNotFoundError("conversation", turn.host_id or str(turn.conversation_id))
    return rows[0]


async def _host_conversation(tx: Transaction, params: dict[str, Any]) -> UUID:
    """Return the id of the conversation the host means; create it when there is none."""
    found = await tx.run(_BY_HOST_ID, params)
    if not found:
        await tx.run(sql("create_turn_conversation"), params)
        # Another call may have created it meanwhile, under an id of its own.
        found = await tx.run(_BY_HOST_ID, params)
    if not found:
        raise ResourceNotFoundError("conversation", params["host_id"])
    conversation_id: UUID = found[0]["conversation_id"]
    return conversation_id


async def _store_anew(tx: Transaction, turn: TurnStore, *, branch: int) -> StoredTurn:
    params = {
        "tenant_id": turn.tenant_id,
        "conversation_id": turn.conversation_id,
        "turn_id": turn.turn_id,
        "branch": branch,
    }
    for row in await tx.run(sql("find_turn"), params):
        if row["in_view"]:
            return await _store_again(tx, turn, event_from(row))
        return await _store_first(tx, turn, supersedes=event_from(row))
    return await _store_first(tx, turn, supersedes=None)


async def _store_again(tx: Transaction, turn: TurnStore, former: Event) -> StoredTurn:
    new = turn.event
    if new.client_supplied_id and new.event_id != former.event_id:
        raise FieldInvalidError(
            "event.event_id", f"must be empty or the turn's: {former.event_id}", new.event_id
        )
    latter = changed(former, turn_values(new, former), datetime.now(UTC))
    await _check_call_unanswered(tx, turn.tenant_id, former, latter)
    stored = await write_change(
        tx, turn, former, latter, tenant_id=turn.tenant_id, kind=ObservationKind.STORE
    )
    superseded = await _superseded_by(tx, turn.tenant_id, stored.event_id)
    return StoredTurn(stored, stored.version, replayed=False, superseded_event_id=superseded)


async def _check_call_unanswered(
    tx: Transaction, tenant_id: UUID, former: Event, latter: Event
) -> None:
    """Refuse another id for a call that results name. Raises FieldInvalidError."""
    former_id, new_id = former.body.tool_call_id, latter.body.tool_call_id
    if former.body.type is not EventType.TOOL_CALL or former_id == new_id:
        return
    params = {
        "tenant_id": tenant_id,
        "conversation_id": former.conversation_id,
        "tool_call_id": former_id,
        "seq": former.seq,
    }
    [row] = await tx.run(_ANSWERED, params)
    if row["found"]:
        raise FieldInvalidError(
            "event.tool_call.tool_call_id",
            f"cannot be changed: a result names the call; store {former_id!r}, or another turn",
            new_id,
        )


async def _store_first(tx: Transaction, turn: TurnStore, *, supersedes: Event | None) -> StoredTurn:
    """Append the turn's event. Raises the errors of appends."""
    append = Append(
        tenant_id=turn.tenant_id,
        conversation_id=turn.conversation_id,
        events=(replace(turn.event, turn_id=turn.turn_id, payload_hash=turn.payload_hash),),
        payload_hash=turn.payload_hash,
        actor=turn.actor,
        event_path="event",
    )
    params = append_params([append])
    rows, *_ = [await tx.run(statement, params) for statement in append_statements([append])]
    outcome = append_outcome(append, rows)
    if isinstance(outcome, AnnalsError):
        raise outcome
    event_id = outcome.events[0].event_id
    place = {"tenant_id": turn.tenant_id, "event_id": event_id}
    event = visible_event(await tx.run(sql("get_event_of_conversation"), place), event_id)
    if supersedes is not None:
        await _supersede(tx, turn.tenant_id, event, supersedes)
    superseded = supersedes.event_id if supersedes else None
    return StoredTurn(event, event.version, replayed=False, superseded_event_id=superseded)


async def _supersede(tx: Transaction, tenant_id: UUID, event: Event, former: Event) -> None:
    params = {
        "tenant_id": tenant_id,
        "conversation_id": event.conversation_id,
        "event_id": event.event_id,
        "superseded_event_id": former.event_id,
        "superseded_seq": former.seq,
        "relationship_id": uuid7(),
    }
    await tx.run(sql("supersede_event"), params)


async def _superseded_by(tx: Transaction, tenant_id: UUID, event_id: UUID) -> UUID | None:
    """Return the event whose place this one took."""
    rows = await tx.run(sql("get_superseded"), {"tenant_id": tenant_id, "event_id": event_id})
    return rows[0]["event_id"] if rows else None
