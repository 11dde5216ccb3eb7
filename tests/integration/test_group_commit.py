"""Group commit agrees with one writer after another, whatever arrives together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.scratch import run

from annals_common.errors import AnnalsError
from annals_local.postgres import LocalPostgres
from annals_storage.commands.grouping import GroupCommit
from annals_storage.domain.appending import Append, AppendResult
from annals_storage.domain.conversations import NewConversation
from annals_storage.domain.events import EventBody, EventType, NewEvent, Role
from annals_storage.postgres.appends import PostgresAppends
from annals_storage.postgres.conversations import PostgresConversations
from annals_storage.postgres.database import Database

ROOMS = 2
STORED = "SELECT seq, content FROM annals.events WHERE conversation_id = %(room)s ORDER BY seq"


@dataclass(frozen=True)
class Ask:
    """An append in short. `keys`: one event each, "" without a key; `says`: their payload."""

    room: int
    keys: tuple[str, ...]
    says: str
    expected: int | None


@dataclass
class Model:
    """One conversation, written by one writer after another."""

    says: list[str] = field(default_factory=list)
    keys: dict[str, tuple[int, str]] = field(default_factory=dict)

    def append(self, ask: Ask) -> tuple[str, tuple[int, ...]]:
        """What must come of it: the reason or "", and the seqs."""
        known = [self.keys.get(key) for key in ask.keys]
        if any(found is not None and found[1] != ask.says for found in known):
            return "IDEMPOTENCY_KEY_REUSED", ()
        fresh = any(found is None for found in known)
        if fresh and ask.expected is not None and ask.expected != len(self.says):
            return "SEQ_MISMATCH", ()
        return "", tuple(map(self._place, ask.keys, [ask.says] * len(ask.keys)))

    def _place(self, key: str, says: str) -> int:
        if key in self.keys:
            return self.keys[key][0]
        self.says.append(says)
        if key:
            self.keys[key] = (len(self.says), says)
        return len(self.says)


ASKS = st.builds(
    Ask,
    room=st.integers(0, ROOMS - 1),
    keys=st.lists(st.sampled_from(["", "", "", "k1", "k2", "k3"]), min_size=1, max_size=3).filter(
        lambda keys: len([key for key in keys if key]) == len({key for key in keys if key})
    ).map(tuple),
    says=st.sampled_from(["a", "b"]),
    expected=st.none() | st.integers(0, 6),
)  # fmt: skip


@pytest.fixture(scope="module")
async def database(postgres: LocalPostgres) -> AsyncIterator[Database]:
    database = Database(postgres.app_url, max_connections=4)
    await database.open()
    yield database
    await database.close()


@pytest.fixture(scope="module")
async def loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def domain_append(tenant_id: UUID, rooms: list[UUID], ask: Ask) -> Append:
    events = tuple(
        NewEvent(
            event_id=uuid4(),
            body=EventBody(EventType.MESSAGE, role=Role.USER, content=ask.says),
            payload_hash=ask.says.encode(),
            token_count=1,
            idempotency_key=key or None,
        )
        for key in ask.keys
    )
    return Append(
        tenant_id, rooms[ask.room], events, payload_hash=b"", expected_last_seq=ask.expected
    )


async def outcome(grouping: GroupCommit, append: Append) -> tuple[str, tuple[int, ...], int]:
    try:
        result: AppendResult = await grouping.append(append)
    except AnnalsError as error:
        return error.reason, (), 0
    return "", tuple(event.seq for event in result.events), result.last_seq


async def send_all(
    database: Database, postgres: LocalPostgres, asks: list[Ask]
) -> list[tuple[str, tuple[int, ...], int]]:
    """Send all at once to fresh conversations; check what is stored against what was said."""
    tenant_id, rooms = uuid4(), [uuid4() for _ in range(ROOMS)]
    run(postgres.admin_url, "INSERT INTO annals.tenants VALUES (%s, 'model')", [tenant_id])
    for room in rooms:
        await PostgresConversations(database).create(tenant_id, NewConversation(room, b""))
    grouping = GroupCommit(PostgresAppends(database))
    outcomes = await asyncio.gather(
        *[outcome(grouping, domain_append(tenant_id, rooms, ask)) for ask in asks]
    )
    await check_stored(database, tenant_id, rooms, asks)
    return list(outcomes)


async def check_stored(
    database: Database, tenant_id: UUID, rooms: list[UUID], asks: list[Ask]
) -> None:
    models = [Model() for _ in rooms]
    for ask in asks:
        models[ask.room].append(ask)
    for room, model in zip(rooms, models, strict=True):
        query = (
            "SELECT seq, content FROM annals.events WHERE conversation_id = %(room)s ORDER BY seq"
        )
        [rows] = await database.run(tenant_id, (query, {"room": room}))
        assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
        assert [row["content"] for row in rows] == model.says
        found = await PostgresConversations(database).get(tenant_id, room)
        assert found is not None
        assert (found.last_seq, found.event_count, found.token_count) == (len(rows),) * 3


def test_agrees_with_one_writer_after_another(
    loop: asyncio.AbstractEventLoop, database: Database, postgres: LocalPostgres
) -> None:
    """Appends of one process to one conversation keep the order of their arrival."""

    @settings(
        max_examples=40,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(ASKS, min_size=1, max_size=14))
    def holds(asks: list[Ask]) -> None:
        models = [Model() for _ in range(ROOMS)]
        expected = [models[ask.room].append(ask) for ask in asks]

        outcomes = loop.run_until_complete(send_all(database, postgres, asks))

        assert [(reason, seqs) for reason, seqs, _ in outcomes] == expected

    holds()


async def test_a_caller_that_leaves_the_line_stores_nothing(
    database: Database, postgres: LocalPostgres
) -> None:
    tenant_id, rooms = uuid4(), [uuid4()]
    run(postgres.admin_url, "INSERT INTO annals.tenants VALUES (%s, 'model')", [tenant_id])
    await PostgresConversations(database).create(tenant_id, NewConversation(rooms[0], b""))
    grouping = GroupCommit(PostgresAppends(database))
    ask = Ask(0, ("",), "a", None)
    first = asyncio.create_task(grouping.append(domain_append(tenant_id, rooms, ask)))
    await asyncio.sleep(0)
    second = asyncio.create_task(grouping.append(domain_append(tenant_id, rooms, ask)))
    await asyncio.sleep(0)

    second.cancel()
    await first
    await grouping.drain()

    found = await PostgresConversations(database).get(tenant_id, rooms[0])
    assert found is not None
    assert found.last_seq == 1
