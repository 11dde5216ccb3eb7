"""Edits and deletions of stored events, and their history."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from annals_common.errors import EventErasedError, ResourceNotFoundError
from annals_common.principal import Actor
from annals_storage.domain.changing import (
    EditedEvent,
    EventEdit,
    EventIsColdError,
    HistoryPage,
    HistoryQuery,
    ObservationKind,
    changed,
    check_call_kept,
    check_version,
)
from annals_storage.domain.events import Event
from annals_storage.postgres.database import Database, Transaction, sql
from annals_storage.postgres.event_versions import (
    actor_params,
    again_after_races,
    history_params,
    observation_from,
    observed_by_key,
    visible_event,
    write_change,
)

_NEWEST_OF_TURN = """
SELECT event_id FROM annals.events
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  AND turn_id = %(turn_id)s
ORDER BY seq DESC LIMIT 1
"""


class PostgresEventChanges:
    """Changes of events of a tenant. Events of deleted conversations are not visible."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def edit(self, edit: EventEdit) -> EditedEvent:
        """Make the next version of an event, once for each idempotency key.

        Raises ResourceNotFoundError, IdempotencyKeyReusedError, EventErasedError,
        EventDeletedError, VersionMismatchError, FieldInvalidError, ToolCallNotFoundError,
        EventIsColdError.
        """
        return await again_after_races(lambda: self._edit(edit))

    async def _edit(self, edit: EventEdit) -> EditedEvent:
        tenant_id = edit.tenant_id
        async with self._database.transaction(tenant_id) as tx:
            former = await _locked_event(tx, tenant_id, edit.event_id)
            seen = await observed_by_key(tx, tenant_id, former.conversation_id, edit)
            if seen is not None:
                return EditedEvent(seen.event, replayed=True)
            latter = changed(former, edit.values, datetime.now(UTC))
            check_call_kept(former, latter.body)
            check_version(former, edit.expected_version)
            stored = await write_change(
                tx, edit, former, latter, tenant_id=tenant_id, kind=ObservationKind.EDIT
            )
            return EditedEvent(stored, replayed=False)

    async def set_deleted(
        self, tenant_id: UUID, event_id: UUID, actor: Actor, *, deleted: bool
    ) -> Event:
        """Hide or show an event; return it as it is now.

        Raises ResourceNotFoundError, EventErasedError, EventIsColdError.
        """
        params = {
            "tenant_id": tenant_id,
            "event_id": event_id,
            "deleted": deleted,
            **actor_params(actor),
        }
        *_, rows = await self._database.run(
            tenant_id,
            (sql("lock_event_conversation"), params),
            (sql("set_event_deleted"), params),
            (sql("get_event_of_conversation"), params),
        )
        event = visible_event(rows, event_id)
        if event.erased_at is not None:
            raise EventErasedError(str(event_id))
        if (event.deleted_at is not None) != deleted:
            raise EventIsColdError(event)
        return event

    async def history(self, tenant_id: UUID, query: HistoryQuery) -> HistoryPage:
        """Return one page, newest first. Nothing is left of the history of an erased event.

        Raises ResourceNotFoundError.
        """
        event_id = query.event_id or await self._newest_of_turn(tenant_id, query)
        params = history_params(
            tenant_id, event_id, before_version=query.before_version, limit=query.limit
        )
        events, rows = await self._database.run(
            tenant_id,
            (sql("get_event_of_conversation"), params),
            (sql("list_observations"), params),
        )
        visible_event(events, event_id)
        found = tuple(observation_from(row) for row in rows)
        return HistoryPage(found, has_more=bool(rows and rows[0]["has_more"]))

    async def _newest_of_turn(self, tenant_id: UUID, query: HistoryQuery) -> UUID:
        params = {
            "tenant_id": tenant_id,
            "conversation_id": query.conversation_id,
            "turn_id": query.turn_id,
        }
        [rows] = await self._database.run(tenant_id, (_NEWEST_OF_TURN, params))
        if not rows:
            raise ResourceNotFoundError("turn", f"{query.conversation_id}:{query.turn_id}")
        found: UUID = rows[0]["event_id"]
        return found


async def _locked_event(tx: Transaction, tenant_id: UUID, event_id: UUID) -> Event:
    """Return an event, its conversation locked. Raises ResourceNotFoundError."""
    params = {"tenant_id": tenant_id, "event_id": event_id}
    await tx.run(sql("lock_event_conversation"), params)
    return visible_event(await tx.run(sql("get_event_of_conversation"), params), event_id)
