"""Wakes the watches of every process after a commit: LISTEN and NOTIFY.

A notification only wakes; what is delivered is read from the tables. It travels on a connection
and in a transaction of its own, because transactions that notify commit one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from uuid import UUID

import psycopg
import structlog

from annals_common.cancellation import pause

CHANNEL = "annals_events"
GATHER_SECONDS = 0.02
"""Commits within so long of one another share a notification."""
RECONNECT_SECONDS = 1.0
MAX_PAYLOAD_BYTES = 7_900
"""PostgreSQL's limit is 8,000."""
EVERYTHING = "*"
_NOTIFY = """
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)
"""
_LISTEN = f"LISTEN {CHANNEL}"
log = structlog.get_logger()

Changed = Mapping[UUID, Collection[UUID]]
"""Conversations by tenant."""


class PostgresNotifications:
    """One listening and one sending connection of this process.

    `on_wake` gets the conversations that changed, or None when anything may have.
    """

    def __init__(self, conninfo: str, on_wake: Callable[[Changed | None], None]) -> None:
        self._conninfo, self._on_wake = conninfo, on_wake
        self._changed: dict[UUID, set[UUID]] = {}
        self._sending: asyncio.Task[None] | None = None
        self._sender: psycopg.AsyncConnection | None = None

    def notify(self, tenant_id: UUID, conversation_ids: Iterable[UUID]) -> None:
        """Have it told soon; returns at once. What cannot be told is found by polling."""
        self._changed.setdefault(tenant_id, set()).update(conversation_ids)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())

    async def listen(self) -> None:
        """Wake watches until cancelled, whatever happens to the connection."""
        while True:
            try:
                await self._listen_once()
            except (psycopg.Error, OSError) as error:
                log.warning("listening", cause=repr(error))
            await pause(RECONNECT_SECONDS)

    async def close(self) -> None:
        """Let go of the sending connection; what was not told yet stays untold."""
        if self._sending is not None:
            self._sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sending
        await self._disconnect()

    async def _listen_once(self) -> None:
        connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        async with connection:
            await connection.execute(_LISTEN)
            # Whatever came while nobody listened.
            self._on_wake(None)
            async for notification in connection.notifies():
                self._on_wake(read_payload(notification.payload))

    async def _send_all(self) -> None:
        while self._changed:
            payload = write_payload(self._changed)
            self._changed = {}
            try:
                await self._send(payload)
            except (psycopg.Error, OSError) as error:
                log.warning("notifying", cause=repr(error))
                await self._disconnect()
            await pause(GATHER_SECONDS)

    async def _send(self, payload: str) -> None:
        if self._sender is None:
            self._sender = await psycopg.AsyncConnection.connect(
                self._conninfo, autocommit=True, cursor_factory=psycopg.AsyncRawCursor
            )
        await self._sender.execute(_NOTIFY, [CHANNEL, payload])

    async def _disconnect(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            await sender.close()


def write_payload(changed: Changed) -> str:
    """Return `tenant:conversation,conversation;tenant:…` in hexadecimal, or "*" when too long."""
    parts = (
        f"{tenant_id.hex}:{','.join(each.hex for each in conversation_ids)}"
        for tenant_id, conversation_ids in changed.items()
    )
    payload = ";".join(parts)
    return payload if len(payload) <= MAX_PAYLOAD_BYTES else EVERYTHING


def read_payload(payload: str) -> Changed | None:
    """Undo write_payload; None for "*" and for what another version may have written."""
    try:
        return dict(_read_part(part) for part in payload.split(";"))
    except ValueError:
        return None


def _read_part(part: str) -> tuple[UUID, list[UUID]]:
    tenant, _, conversations = part.partition(":")
    return UUID(tenant), [UUID(each) for each in conversations.split(",")]
