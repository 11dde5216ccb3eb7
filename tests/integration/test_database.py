"""Pipelined transactions: what one failure leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.support.scratch import ScratchDatabase

from annals_common.errors import DependencyUnavailableError, ResourceNotFoundError
from annals_storage.domain.conversations import NewConversation
from annals_storage.postgres.conversations import PostgresConversations
from annals_storage.postgres.database import Database

TENANT = UUID("00000000-0000-7000-8000-00000000000a")
REPETITIONS = 12
"""Beyond psycopg's threshold for preparing a statement."""


@pytest.fixture
async def database(scratch: ScratchDatabase) -> AsyncIterator[Database]:
    scratch.admin("INSERT INTO annals.tenants VALUES (%s, 'x')", [TENANT])
    database = Database(scratch.app_url, max_connections=1, statement_timeout_ms=300)
    await database.open()
    yield database
    await database.close()


def conversation(agent_id: UUID | None = None) -> NewConversation:
    return NewConversation(uuid4(), b"hash", agent_id=agent_id)


async def test_a_refused_statement_does_not_spoil_the_connection(database: Database) -> None:
    conversations = PostgresConversations(database)

    for _ in range(REPETITIONS):
        with pytest.raises(ResourceNotFoundError):
            await conversations.create(TENANT, conversation(uuid4()))
        creation = await conversations.create(TENANT, conversation())
        assert creation.created


async def test_refusals_alone_do_not_spoil_the_connection(database: Database) -> None:
    conversations = PostgresConversations(database)
    for _ in range(REPETITIONS):
        with pytest.raises(ResourceNotFoundError):
            await conversations.create(TENANT, conversation(uuid4()))

    creation = await conversations.create(TENANT, conversation())

    assert creation.created


async def test_a_statement_that_times_out_does_not_spoil_the_connection(
    database: Database,
) -> None:
    slow, quick = ("SELECT pg_sleep(0.31)", {}), ("SELECT 41 + %(n)s AS sum", {"n": 1})
    for _ in range(6):
        with pytest.raises(TimeoutError):
            await database.run(TENANT, slow, quick)

    _, [row] = await database.run(TENANT, ("SELECT 1", {}), quick)

    assert row["sum"] == 42


async def test_a_failure_rolls_everything_back(database: Database) -> None:
    insert = (
        "INSERT INTO annals.conversations (tenant_id, conversation_id) VALUES (%(t)s, %(t)s)",
        {"t": TENANT},
    )
    with pytest.raises(psycopg.errors.DivisionByZero):
        await database.run(TENANT, insert, ("SELECT 1/0", {}))

    [rows] = await database.run(TENANT, ("SELECT FROM annals.conversations", {}))
    assert rows == []


async def test_the_tenant_does_not_stay_with_the_connection(database: Database) -> None:
    setting = ("SELECT current_setting('annals.tenant_id', true) AS tenant", {})
    [[inside]] = await database.run(TENANT, setting)

    [[after]] = await database.run_untenanted(setting)

    assert (inside["tenant"], after["tenant"]) == (str(TENANT), "")


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    database = Database("postgresql://annals_app@localhost:1/none", max_connections=1)
    database.pool.timeout = 0.2

    with pytest.raises(DependencyUnavailableError):
        await database.ping()


_WHO = "SELECT current_setting('annals.tenant_id', true) AS tenant, pg_backend_pid() AS process"


async def test_a_connection_is_used_again(database: Database) -> None:
    processes = set()
    for _ in range(REPETITIONS):
        [[now]] = await database.run(TENANT, (_WHO, {}))
        processes.add(now["process"])
        async with database.transaction(TENANT) as transaction:
            [now] = await transaction.run(_WHO, {})
        processes.add(now["process"])

    assert len(processes) == 1


async def test_a_call_cut_off_anywhere_leaves_no_pipeline(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # psycopg gives way to other tasks wherever it may, as it does when the process is busy.
    monkeypatch.setattr(psycopg.waiting, "MAX_BUSY_TIME", 0.0)
    for turns in range(40):
        running = asyncio.create_task(database.run(TENANT, (_WHO, {})))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running})

        tenant_id = uuid4()
        async with database.transaction(tenant_id) as transaction:
            [now] = await transaction.run(_WHO, {})

        assert now["tenant"] == str(tenant_id), f"cancelled at turn {turns}"
