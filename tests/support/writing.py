"""Appends through the write path alone, without a service in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from tests.support.scratch import ScratchDatabase

from annals_storage.domain.appending import Append
from annals_storage.domain.conversations import NewConversation
from annals_storage.domain.events import EventBody, EventType, NewEvent, Role
from annals_storage.postgres.appends import PostgresAppends
from annals_storage.postgres.conversations import PostgresConversations
from annals_storage.postgres.database import Database


@dataclass(slots=True)
class Writer:
    """Writes to a conversation of its own. `event_ids`: what was acknowledged."""

    tenant_id: UUID
    conversation_id: UUID
    appends: PostgresAppends
    event_ids: list[UUID] = field(default_factory=list)

    async def append(self, count: int) -> None:
        """Append so many messages, no two alike, in one transaction."""
        events = tuple(_message() for _ in range(count))
        append = Append(self.tenant_id, self.conversation_id, events, b"hash")
        [result] = await self.appends.store([append])
        if isinstance(result, Exception):
            raise result
        self.event_ids += [event.event_id for event in events]


def _message() -> NewEvent:
    body = EventBody(type=EventType.MESSAGE, role=Role.USER, content=f"Parcel {uuid4()} left")
    return NewEvent(event_id=uuid4(), body=body, token_count=20, payload_hash=b"hash")


@asynccontextmanager
async def writing(
    scratch: ScratchDatabase, *, connections: int
) -> AsyncIterator[Callable[[], Awaitable[Writer]]]:
    """Yield what makes writers of one tenant, over so many connections."""
    database = Database(scratch.app_url, max_connections=connections)
    await database.open()
    tenant_id = uuid4()
    scratch.admin("INSERT INTO annals.tenants VALUES (%s, 'x')", [tenant_id])

    async def make() -> Writer:
        conversation = NewConversation(uuid4(), b"")
        await PostgresConversations(database).create(tenant_id, conversation)
        return Writer(tenant_id, conversation.conversation_id, PostgresAppends(database))

    try:
        yield make
    finally:
        await database.close()
