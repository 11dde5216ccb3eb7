"""Searches are logged after their answers, and nobody waits for it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from prometheus_client import REGISTRY
from tests.support.appending import append, empty_conversation
from tests.support.indexing import indexed
from tests.support.locks import waiting_for_lock
from tests.support.memories import find, remembered
from tests.support.raw import Raw, failure
from tests.support.storage import (
    RunningStorage,
    Tenant,
    fresh_tenant,
    running_storage,
    storage_settings,
)
from tests.support.waiting import eventually

from annals.storage.v1 import search_service_pb2 as pb
from annals.storage.v1.erasure_service_pb2 import (
    EraseConversationRequest,
    EraseTenantRequest,
    EraseUserRequest,
)
from annals.storage.v1.tenant_service_pb2 import GetTenantRequest
from annals_client import user
from annals_common.errors import DependencyUnavailableError
from annals_common.principal import Actor
from annals_local.postgres import LocalPostgres
from annals_storage.commands.search_log import SearchLog
from annals_storage.domain.search_log import LoggedSearch, SearchLogKind, SearchLogQuery
from annals_storage.postgres.database import sql
from annals_storage.postgres.search_log import PostgresSearchLog

_LOGGED = """
INSERT INTO annals.search_log
  (tenant_id, search_id, kind, query, conversation_id, hit_count, top_score, search_time_ms)
VALUES (%(tenant_id)s, %(search_id)s, 'events', 'on its way', %(conversation_id)s, 0, 0, 0)
"""


async def logged(tenant: Tenant, **query: Any) -> list[pb.SearchLogEntry]:
    """The whole log of a query, over all pages."""
    found: list[pb.SearchLogEntry] = []
    token = ""
    while True:
        request = pb.ListSearchLogRequest(page_token=token, **query)
        page = await tenant.raw.call("ListSearchLog", request)
        found += page.entries
        token = page.next_page_token
        if not token:
            return found


async def when_logged(tenant: Tenant, count: int, **query: Any) -> list[pb.SearchLogEntry]:
    return await eventually(lambda: logged(tenant, **query), lambda found: len(found) == count)


def dropped(cause: str) -> float:
    return REGISTRY.get_sample_value("annals_search_log_dropped_total", {"cause": cause}) or 0.0


async def test_a_search_of_events_and_one_of_memories(tenant: Tenant) -> None:
    stored = await append(tenant.raw, "", user("The heron eats frogs."), user("Cats eat fish."))
    await remembered(tenant, "The heron eats frogs.")
    await indexed(tenant)
    events = await tenant.client.search.events("heron", conversation_ids=[stored.conversation_id])
    memories = await find(tenant, "heron", threshold=0.0)

    of_memories, of_events = await when_logged(tenant, 2)

    assert (of_events.kind, of_events.query) == (pb.SEARCH_LOG_KIND_EVENTS, "heron")
    assert of_events.conversation_id == stored.conversation_id
    assert of_events.hit_count == len(events.hits) > 0
    assert of_events.top_score == events.hits[0].score
    assert of_events.search_time_ms == events.search_time_ms > 0
    assert (of_memories.kind, of_memories.hit_count) == (pb.SEARCH_LOG_KIND_MEMORIES, 1)
    assert of_memories.conversation_id == ""
    assert of_memories.top_score == memories.hits[0].similarity
    assert UUID(of_events.search_id) != UUID(of_memories.search_id)
    assert UUID(of_events.actor.api_key_id)
    assert of_events.create_time.ToDatetime() <= of_memories.create_time.ToDatetime()


async def test_a_search_without_hits_and_in_several_conversations(tenant: Tenant) -> None:
    await tenant.client.search.events("nothing", conversation_ids=[str(uuid4()), str(uuid4())])

    [entry] = await when_logged(tenant, 1)

    assert (entry.hit_count, entry.top_score, entry.conversation_id) == (0, 0.0, "")


async def test_a_refused_search_is_not_logged(tenant: Tenant) -> None:
    await failure(tenant.raw.call("SearchEvents", pb.SearchEventsRequest()))
    await tenant.client.search.events("after it")

    assert [entry.query for entry in await when_logged(tenant, 1)] == ["after it"]


async def test_a_tenant_reads_its_own_log_alone(tenant: Tenant, other_tenant: Tenant) -> None:
    await tenant.client.search.events("mine")
    await other_tenant.client.search.events("theirs")

    assert [entry.query for entry in await when_logged(tenant, 1)] == ["mine"]
    assert [entry.query for entry in await when_logged(other_tenant, 1)] == ["theirs"]


async def test_reading_needs_the_scope_of_an_administrator(
    storage: RunningStorage, tenant: Tenant
) -> None:
    made = await tenant.client.keys.create("data only", scopes=["data"])
    async with storage.raw(made.api_key_secret) as data_only:
        refused = await failure(data_only.call("ListSearchLog", pb.ListSearchLogRequest()))

    assert (refused.code.name, refused.reason) == ("PERMISSION_DENIED", "SCOPE_MISSING")


async def test_the_installations_administrator_reads_none(admin: Any) -> None:
    refused = await failure(admin.call("ListSearchLog", pb.ListSearchLogRequest()))

    assert refused.reason == "SCOPE_MISSING"


class TestPages:
    @pytest.fixture
    async def rooms(self, storage: RunningStorage, tenant: Tenant) -> list[UUID]:
        """Nine searches, a minute apart, in two conversations by turns."""
        rooms = [UUID(await empty_conversation(tenant)) for _ in range(2)]
        start = datetime(2026, 1, 1, tzinfo=UTC)
        searches = [
            LoggedSearch(
                search_id=uuid4(),
                kind=SearchLogKind.EVENTS,
                query=f"q{number}",
                conversation_id=rooms[number % 2],
                hit_count=number,
                top_score=0.5,
                search_time_ms=1.0,
                actor=Actor(user_id="ann"),
                created_at=start + timedelta(minutes=number),
            )
            for number in range(9)
        ]
        log = PostgresSearchLog(storage.adapters.database)
        await log.write(UUID(tenant.tenant_id), searches)
        return rooms

    @pytest.mark.usefixtures("rooms")
    async def test_newest_first(self, tenant: Tenant) -> None:
        found = await logged(tenant, page_size=2)

        assert [entry.query for entry in found] == [f"q{n}" for n in reversed(range(9))]
        assert {entry.actor.user_id for entry in found} == {"ann"}

    async def test_of_a_conversation_and_a_time(self, tenant: Tenant, rooms: list[UUID]) -> None:
        query: dict[str, Any] = {"conversation_id": str(rooms[0])}
        request = pb.ListSearchLogRequest(**query)
        request.start_time.FromDatetime(datetime(2026, 1, 1, 0, 2, tzinfo=UTC))
        request.end_time.FromDatetime(datetime(2026, 1, 1, 0, 6, tzinfo=UTC))

        found = await tenant.raw.call("ListSearchLog", request)

        assert [entry.query for entry in found.entries] == ["q4", "q2"]

    async def test_a_token_of_another_query_is_refused(
        self, tenant: Tenant, rooms: list[UUID]
    ) -> None:
        page = await tenant.raw.call("ListSearchLog", pb.ListSearchLogRequest(page_size=1))
        other = pb.ListSearchLogRequest(
            conversation_id=str(rooms[0]), page_token=page.next_page_token
        )

        refused = await failure(tenant.raw.call("ListSearchLog", other))

        assert refused.reason == "PAGE_TOKEN_INVALID"


class Unreachable:
    """A log whose PostgreSQL is down."""

    async def write(self, _tenant_id: UUID, _searches: Any) -> None:
        raise DependencyUnavailableError("postgresql")

    async def page(self, _tenant_id: UUID, _query: SearchLogQuery) -> list[LoggedSearch]:
        raise DependencyUnavailableError("postgresql")


def record(
    log: SearchLog,
    tenant: Tenant,
    query: str,
    *,
    actor: Actor = Actor(),  # noqa: B008 - frozen
    conversation_ids: tuple[UUID, ...] = (),
) -> None:
    log.record(
        UUID(tenant.tenant_id),
        actor,
        kind=SearchLogKind.EVENTS,
        query=query,
        conversation_ids=conversation_ids,
        scores=(),
        search_time_ms=1.0,
    )


class TestQueue:
    async def test_what_does_not_fit_is_dropped_and_counted(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        log = SearchLog(PostgresSearchLog(storage.adapters.database), max_waiting=3)
        before = dropped("full")

        for number in range(5):
            record(log, tenant, f"q{number}")
        await log.drain()

        assert dropped("full") == before + 2
        assert sorted(entry.query for entry in await logged(tenant)) == ["q0", "q1", "q2"]

    async def test_more_than_a_batch_is_written(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        log = SearchLog(PostgresSearchLog(storage.adapters.database))
        for number in range(1_100):
            record(log, tenant, f"q{number}")

        await log.drain()

        assert len(await logged(tenant, page_size=1000)) == 1_100

    async def test_an_unreachable_postgresql_costs_the_log_and_nothing_else(
        self, tenant: Tenant
    ) -> None:
        log, before = SearchLog(Unreachable()), dropped("unwritten")
        log.start()
        record(log, tenant, "q")

        await log.drain()

        assert dropped("unwritten") == before + 1

    async def test_a_service_that_drains_loses_none(
        self, postgres: LocalPostgres, storage: RunningStorage, tmp_path_factory: Any
    ) -> None:
        settings = storage_settings(postgres, tmp_path_factory.mktemp("draining"))
        async with fresh_tenant(storage) as tenant:
            async with running_storage(settings) as other, other.raw(tenant.api_key) as raw:
                for number in range(20):
                    request = pb.SearchEventsRequest(query=f"q{number}")
                    await raw.call("SearchEvents", request)

            assert len(await logged(tenant)) == 20


class TestErasedMeanwhile:
    """Searches that wait to be logged while what they were about is erased."""

    async def test_a_conversation(self, storage: RunningStorage, tenant: Tenant) -> None:
        log = SearchLog(PostgresSearchLog(storage.adapters.database))
        kept, erased = [UUID(await empty_conversation(tenant)) for _ in range(2)]
        record(log, tenant, "kept", conversation_ids=(kept,))
        record(log, tenant, "erased", conversation_ids=(erased,))
        request = EraseConversationRequest(conversation_id=str(erased))
        await tenant.raw.call("EraseConversation", request)

        await log.flush()

        assert [entry.query for entry in await logged(tenant)] == ["kept"]

    async def test_while_it_is_being_logged(
        self, storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        """The erasure waits, and then takes away what was written."""
        tenant_id, room = UUID(tenant.tenant_id), UUID(await empty_conversation(tenant))
        lock = {"tenant_id": tenant_id, "shared": True}
        logging = {"tenant_id": tenant_id, "conversation_id": room, "search_id": uuid4()}
        async with storage.adapters.database.transaction(tenant_id) as writer:
            await writer.run(sql("search_log_lock"), lock)
            await writer.run(_LOGGED, logging)
            request = EraseConversationRequest(conversation_id=str(room))
            erasing = asyncio.create_task(tenant.raw.call("EraseConversation", request))
            await eventually(
                lambda: waiting_for_lock(postgres, "search_log_lock"), lambda count: count == 1
            )
        await erasing

        assert await logged(tenant) == []

    async def test_a_user(self, storage: RunningStorage, tenant: Tenant) -> None:
        log = SearchLog(PostgresSearchLog(storage.adapters.database))
        record(log, tenant, "of another", actor=Actor(user_id="ben"))
        record(log, tenant, "before", actor=Actor(user_id="ann"))
        await tenant.raw.call("EraseUser", EraseUserRequest(user_id="ann"))
        record(log, tenant, "after", actor=Actor(user_id="ann"))

        await log.flush()

        assert {entry.query for entry in await logged(tenant)} == {"of another", "after"}

    async def test_a_tenant(self, storage: RunningStorage, admin: Raw) -> None:
        log = SearchLog(PostgresSearchLog(storage.adapters.database))
        async with fresh_tenant(storage) as doomed:
            record(log, doomed, "too late")
            tenant_id = doomed.tenant_id
            read = GetTenantRequest(tenant_id=tenant_id)
            name = (await admin.call("GetTenant", read)).tenant.display_name
            request = EraseTenantRequest(tenant_id=tenant_id, confirm_display_name=name)
            await admin.call("EraseTenant", request)

        await log.flush()

        query = SearchLogQuery(limit=1)
        store = PostgresSearchLog(storage.adapters.database)
        assert await store.page(UUID(tenant_id), query) == []
