"""WatchEvents: every event once, in order, whatever happens on the way."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections import Counter
from contextlib import suppress
from typing import Any
from uuid import uuid4

import grpc.aio
import psycopg
import pytest
from prometheus_client import REGISTRY
from tests.support.appending import append, blank, empty_conversation, ids
from tests.support.raw import Failure, failure, failure_of
from tests.support.scratch import run
from tests.support.storage import (
    Tenant,
    fresh_tenant,
    running_storage,
    storage_settings,
)
from tests.support.transfers import call, exported, imported, remove, small_conversation
from tests.support.waiting import eventually

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import user
from annals_common.settings import ServerSettings
from annals_local.postgres import LocalPostgres
from annals_storage.commands import watch_sources, watching
from annals_storage.postgres import watch as postgres_watch

WRITERS = 16
ROUNDS = 12


class Watch:
    """One watch: what it has delivered, and where it stands."""

    def __init__(self, tenant: Tenant, **fields: Any) -> None:
        self.tenant, self.fields = tenant, fields
        self.events: list[Any] = []
        self.token = ""
        self._call: Any = None

    async def begin(self) -> Watch:
        request = pb.WatchEventsRequest(**{"resume_token": self.token, **self.fields})
        self._call = self.tenant.raw.answers("WatchEvents", request, timeout_s=None)
        first = await asyncio.wait_for(self._call.read(), 10)
        self._take(first)
        return self

    async def until(self, count: int, *, timeout_s: float = 20) -> list[str]:
        async with asyncio.timeout(timeout_s):
            while len(self.events) < count:
                self._take(await self._call.read())
        return self.contents()

    async def read(self) -> Any:
        return await self._call.read()

    def stop(self) -> None:
        if self._call is not None:
            self._call.cancel()

    def contents(self) -> list[str]:
        return [event.message.content for event in self.events]

    def _take(self, answer: pb.WatchEventsResponse) -> None:
        self.events += answer.events
        self.token = answer.resume_token


@pytest.fixture
async def watches() -> Any:
    """Stops every watch at the end."""
    begun: list[Watch] = []
    yield begun
    for watch in begun:
        watch.stop()


async def begin(watches: list[Watch], tenant: Tenant, **fields: Any) -> Watch:
    watches.append(Watch(tenant, **fields))
    return await watches[-1].begin()


async def agent_rooms(tenant: Tenant, count: int = 1) -> tuple[str, list[str]]:
    """An agent and conversations of it."""
    agent = (await tenant.client.agents.create("watched")).agent_id
    made = [await tenant.client.conversations.create(agent_id=agent) for _ in range(count)]
    return agent, [room.conversation_id for room in made]


async def ending(watch: Watch) -> Failure:
    """How a watch ends."""
    try:
        while True:
            if await watch.read() is grpc.aio.EOF:
                raise AssertionError("the watch ended without an error")
    except grpc.aio.AioRpcError as error:
        return failure_of(error)


class TestConversation:
    async def test_is_followed_from_now_on(self, tenant: Tenant, watches: Any) -> None:
        room = await small_conversation(tenant, "before")
        watch = await begin(watches, tenant, conversation_id=room)
        assert (watch.events, bool(watch.token)) == ([], True)

        await append(tenant.raw, room, user("a"), user("b"))
        await append(tenant.raw, room, user("c"))

        assert await watch.until(3) == ["a", "b", "c"]
        assert [event.seq for event in watch.events] == [2, 3, 4]

    async def test_is_followed_from_a_position(self, tenant: Tenant, watches: Any) -> None:
        room = await small_conversation(tenant, *map(str, range(500)))

        watch = await begin(watches, tenant, conversation_id=room, after_seq=3)

        assert await watch.until(497) == [str(n) for n in range(3, 500)]

    async def test_is_resumed_behind_the_last_answer(self, tenant: Tenant, watches: Any) -> None:
        room = await small_conversation(tenant)
        watch = await begin(watches, tenant, conversation_id=room)
        await append(tenant.raw, room, user("a"))
        await watch.until(1)
        watch.stop()
        await append(tenant.raw, room, user("b"))

        await watch.begin()

        assert await watch.until(2) == ["a", "b"]

    async def test_a_branch_shows_what_is_in_its_view(self, tenant: Tenant, watches: Any) -> None:
        room = await small_conversation(tenant, "a", "b")
        first = (await call(tenant, "GetEvent", conversationId=room, seq=1)).event.event_id
        made = await call(tenant, "CreateBranch", conversationId=room, eventId=first)
        of_branch = await begin(
            watches, tenant, conversation_id=room, branch=made.branch.branch, after_seq=0
        )
        of_all = await begin(watches, tenant, conversation_id=room, after_seq=0)

        await append(tenant.raw, room, user("trunk"), branch=1)
        await append(tenant.raw, room, user("branch"), branch=made.branch.branch)

        assert await of_all.until(4) == ["a", "b", "trunk", "branch"]
        assert await of_branch.until(2) == ["a", "branch"]

    async def test_deleted_events_are_passed_over(self, tenant: Tenant, watches: Any) -> None:
        room = await small_conversation(tenant, "a", "gone", "c")
        gone = (await call(tenant, "GetEvent", conversationId=room, seq=2)).event.event_id
        await call(tenant, "DeleteEvent", eventId=gone)

        watch = await begin(watches, tenant, conversation_id=room, after_seq=0)

        assert await watch.until(2) == ["a", "c"]

    async def test_a_turn_arrives_once(self, tenant: Tenant, watches: Any) -> None:
        room = await small_conversation(tenant)
        watch = await begin(watches, tenant, conversation_id=room)
        for words in ("one", "two"):
            await call(
                tenant, "StoreTurn", conversationId=room, turnId="t",
                event={"message": {"role": "ROLE_USER", "content": words}},
            )  # fmt: skip
        await append(tenant.raw, room, user("after"))

        contents = await watch.until(2)

        assert contents[0] in {"one", "two"}
        assert contents[1:] == ["after"]

    async def test_ends_when_it_is_deleted(
        self, postgres: LocalPostgres, tmp_path: Any, watches: Any
    ) -> None:
        async with own_storage(postgres, tmp_path) as storage, fresh_tenant(storage) as tenant:
            room = await small_conversation(tenant)
            watch = await begin(watches, tenant, conversation_id=room)

            await tenant.client.conversations.delete(room)

            assert (await ending(watch)).reason == "RESOURCE_NOT_FOUND"


class TestAgent:
    async def test_events_of_all_its_conversations_arrive(
        self, tenant: Tenant, watches: Any
    ) -> None:
        agent, rooms = await agent_rooms(tenant, 2)
        _, [others] = await agent_rooms(tenant)
        watch = await begin(watches, tenant, agent_id=agent)

        await append(tenant.raw, rooms[0], user("a"))
        await append(tenant.raw, others, user("not mine"))
        await append(tenant.raw, rooms[1], user("b"), user("c"))
        started = await append(tenant.raw, "", user("d"), agent_id=agent)

        assert await watch.until(4) == ["a", "b", "c", "d"]
        assert watch.events[-1].conversation_id == started.conversation_id

    @pytest.mark.parametrize("large", [False, True])
    async def test_a_large_import_arrives_in_order(
        self,
        tenant: Tenant,
        postgres: LocalPostgres,
        watches: Any,
        monkeypatch: pytest.MonkeyPatch,
        large: bool,
    ) -> None:
        monkeypatch.setattr(postgres_watch, "MAX_ARRIVALS", 50 if large else 10_000)
        monkeypatch.setattr(watch_sources, "PAGE_EVENTS", 40)
        agent, rooms = await agent_rooms(tenant, 2)
        for room in rooms:
            await append(tenant.raw, room, *(user(str(n)) for n in range(120)))
        data = b"".join([await exported(tenant, room) for room in rooms])
        for room in rooms:
            remove(postgres, tenant.tenant_id, room)
        watch = await begin(watches, tenant, agent_id=agent)

        await imported(tenant, data)
        await watch.until(90)
        watch.stop()
        await watch.begin()
        await watch.until(240)
        await append(tenant.raw, rooms[0], user("after"))
        await watch.until(241)

        arrived = [(event.conversation_id, event.seq) for event in watch.events]
        expected = [(room, seq) for room in sorted(rooms) for seq in range(1, 121)]
        assert arrived == [*expected, (rooms[0], 121)]

    async def test_a_transaction_that_commits_late_is_not_skipped(
        self, tenant: Tenant, postgres: LocalPostgres, watches: Any
    ) -> None:
        agent, [held, quick] = await agent_rooms(tenant, 2)
        watch = await begin(watches, tenant, agent_id=agent)
        async with await psycopg.AsyncConnection.connect(postgres.admin_url) as connection:
            await late_insert(connection, tenant.tenant_id, held, "late")
            await append(tenant.raw, quick, user("quick"))
            # A second look, so that a watch that goes by what is visible would have moved on.
            await begin(watches, tenant, agent_id=agent)
            await append(tenant.raw, quick, user("quicker"))
            token = watch.token
            await connection.commit()
        await append(tenant.raw, quick, user("last"))

        contents = await watch.until(4)

        assert Counter(contents) == Counter(["late", "quick", "quicker", "last"])
        again = Watch(tenant, agent_id=agent)
        again.token = token
        watches.append(await again.begin())
        assert Counter(await again.until(4)) == Counter(contents)

    async def test_rows_of_before_are_not_delivered(
        self, tenant: Tenant, postgres: LocalPostgres, watches: Any
    ) -> None:
        agent, [room] = await agent_rooms(tenant)
        watch = await begin(watches, tenant, agent_id=agent)
        watch.stop()
        stored = await append(tenant.raw, room, user("old"))
        statement = "UPDATE annals.observations SET xid = NULL WHERE event_id = %s"
        run(postgres.admin_url, statement, [ids(stored)[0]])

        await watch.begin()
        await append(tenant.raw, room, user("new"))

        assert await watch.until(1) == ["new"]


async def late_insert(connection: Any, tenant_id: str, room: str, words: str) -> None:
    """Store an event as an append does, and do not commit."""
    event_id = str(uuid4())
    await connection.execute(
        "UPDATE annals.conversations SET next_seq = next_seq + 1, event_count = event_count + 1,"
        " message_count = message_count + 1 WHERE conversation_id = %s",
        [room],
    )
    await connection.execute(
        "INSERT INTO annals.events (tenant_id, conversation_id, seq, event_id, type, role, content,"
        " token_count, event_time, created_at)"
        " VALUES (%s, %s, 1, %s, 'message', 'user', %s, 0, now(), now())",
        [tenant_id, room, event_id, words],
    )
    await connection.execute(
        "INSERT INTO annals.observations (tenant_id, event_id, version, conversation_id, kind,"
        " payload_hash, created_at) VALUES (%s, %s, 1, %s, 'store', '', now())",
        [tenant_id, event_id, room],
    )


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_event_arrives_once_whatever_is_cut(
    tenant: Tenant, watches: Any, seed: int
) -> None:
    chance = random.Random(seed)
    agent, rooms = await agent_rooms(tenant, 5)
    of_agent = await begin(watches, tenant, agent_id=agent)
    of_room = await begin(watches, tenant, conversation_id=rooms[0])
    writing = asyncio.gather(*(_write(tenant, rooms, n, seed) for n in range(WRITERS)))

    while not writing.done():
        for watch in (of_agent, of_room):
            await _cut_after(watch, chance.randint(1, 40))
    sent = [pair for pairs in await writing for pair in pairs]
    await of_agent.until(len(sent))
    expected_of_room = [words for room, words in sent if room == rooms[0]]
    await of_room.until(len(expected_of_room))

    arrived = [(event.conversation_id, event.message.content) for event in of_agent.events]
    assert Counter(arrived) == Counter(sent)
    for room in rooms:
        seqs = [event.seq for event in of_agent.events if event.conversation_id == room]
        assert seqs == list(range(1, len(seqs) + 1))
    assert Counter(of_room.contents()) == Counter(expected_of_room)
    assert [event.seq for event in of_room.events] == list(range(1, len(expected_of_room) + 1))


async def _write(tenant: Tenant, rooms: list[str], number: int, seed: int) -> list[Any]:
    chance = random.Random(f"{seed} {number}")
    sent = []
    for turn in range(ROUNDS):
        room = chance.choice(rooms)
        words = [f"{number}.{turn}.{n}" for n in range(chance.randint(1, 3))]
        await append(tenant.raw, room, *(user(text) for text in words))
        sent += [(room, text) for text in words]
    return sent


async def _cut_after(watch: Watch, count: int) -> None:
    """Read a few events, or wait a moment in vain; then break the connection and resume."""
    with suppress(TimeoutError):
        await watch.until(len(watch.events) + count, timeout_s=0.05)
    watch.stop()
    await watch.begin()


class TestWakes:
    async def test_a_lost_notification_only_delays(
        self, postgres: LocalPostgres, tmp_path: Any, watches: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with own_storage(postgres, tmp_path) as storage, fresh_tenant(storage) as tenant:
            room = await small_conversation(tenant)
            watch = await begin(watches, tenant, conversation_id=room)
            monkeypatch.setattr("annals_storage.postgres.notifications.RECONNECT_SECONDS", 3600.0)
            await eventually(_kill_listeners(postgres), lambda left: left == 0)

            await append(tenant.raw, room, user("heard of nowhere"))

            assert await watch.until(1) == ["heard of nowhere"]

    async def test_the_listener_connects_again(
        self, postgres: LocalPostgres, tmp_path: Any, watches: Any
    ) -> None:
        async with (
            own_storage(postgres, tmp_path, watch_poll_seconds=3600.0) as storage,
            fresh_tenant(storage) as tenant,
        ):
            room = await small_conversation(tenant)
            watch = await begin(watches, tenant, conversation_id=room)
            _terminate_listeners(postgres)

            await append(tenant.raw, room, user("a"))
            await watch.until(1)
            await append(tenant.raw, room, user("b"))

            assert await watch.until(2) == ["a", "b"]

    async def test_another_process_is_woken(
        self, postgres: LocalPostgres, tmp_path: Any, watches: Any, tenant: Tenant
    ) -> None:
        """The writer is the session's service, the watch another one's, which never polls."""
        async with own_storage(postgres, tmp_path, watch_poll_seconds=3600.0) as storage:
            room = await small_conversation(tenant)
            async with storage.raw(tenant.api_key) as raw:
                elsewhere = Tenant(tenant.tenant_id, tenant.api_key, tenant.client, raw)
                watch = await begin(watches, elsewhere, conversation_id=room)

                await append(tenant.raw, room, user("from elsewhere"))

                assert await watch.until(1) == ["from elsewhere"]


def own_storage(postgres: LocalPostgres, tmp_path: Any, **overrides: Any) -> Any:
    """A service of its own that looks every tenth of a second, unless told otherwise."""
    return running_storage(
        storage_settings(postgres, tmp_path, **{"watch_poll_seconds": 0.1, **overrides})
    )


_LISTENERS = "FROM pg_stat_activity WHERE query LIKE 'LISTEN annals%%'"


def _terminate_listeners(postgres: LocalPostgres) -> None:
    run(postgres.admin_url, f"SELECT pg_terminate_backend(pid) {_LISTENERS}")


def _kill_listeners(postgres: LocalPostgres) -> Any:
    async def act() -> int:
        _terminate_listeners(postgres)
        count: int = run(postgres.admin_url, f"SELECT count(*) AS n {_LISTENERS}")[0]["n"]
        return count

    return act


class TestLimits:
    async def test_more_watches_than_allowed_are_refused_and_do_not_crowd_out_calls(
        self, postgres: LocalPostgres, tmp_path: Any, watches: Any
    ) -> None:
        server = ServerSettings(address="127.0.0.1:0", max_concurrent_calls=2, drain_seconds=5)
        async with (
            own_storage(postgres, tmp_path, max_watches=3, server=server) as storage,
            fresh_tenant(storage) as tenant,
        ):
            room = await small_conversation(tenant)
            for _ in range(3):
                await begin(watches, tenant, conversation_id=room)

            refused = await failure(begin(watches, tenant, conversation_id=room))
            assert (refused.code.name, refused.reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
            await append(tenant.raw, room, user("still served"))

            watches[0].stop()

            async def admitted() -> bool:
                try:
                    await begin(watches, tenant, conversation_id=room)
                except grpc.aio.AioRpcError:
                    return False
                return True

            assert await eventually(admitted, bool)

    async def test_a_draining_server_lets_watches_go_at_once(
        self, postgres: LocalPostgres, tmp_path: Any, watches: Any
    ) -> None:
        server = ServerSettings(address="127.0.0.1:0", drain_seconds=60)
        loop = asyncio.get_running_loop()
        async with own_storage(postgres, tmp_path, server=server) as storage:
            async with storage.client("") as admin:
                made = await admin.tenants.create("t")
            raw = storage.raw(made.api_key_secret)
            tenant = Tenant(made.tenant.tenant_id, made.api_key_secret, None, raw)  # type: ignore[arg-type]
            started = await append(raw, "", user("x"))
            watch = await begin(watches, tenant, conversation_id=started.conversation_id)
            ended = asyncio.create_task(ending(watch))
            before = loop.time()
        assert loop.time() - before < 30

        refused = await ended

        assert (refused.code.name, refused.reason) == ("UNAVAILABLE", "DEPENDENCY_UNAVAILABLE")
        await raw.channel.close()

    async def test_a_reader_that_stops_reading_is_let_go(
        self, postgres: LocalPostgres, tmp_path: Any, watches: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("annals_storage.handlers.watch.WRITE_SECONDS", 0.2)
        async with (
            own_storage(postgres, tmp_path, max_watches=1) as storage,
            fresh_tenant(storage) as tenant,
        ):
            room = await small_conversation(tenant)
            watch = await begin(watches, tenant, conversation_id=room, after_seq=0)
            for _ in range(12):
                await append(tenant.raw, room, *(user(blank(900_000)) for _ in range(2)))

            refused = await ending_without_reading(watch)

            assert refused.reason == "WATCHER_TOO_SLOW"
            assert refused.retry_after_ms

    async def test_silence_is_broken_by_signs_of_life(
        self, tenant: Tenant, watches: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(watching, "HEARTBEAT_SECONDS", 0.1)
        room = await small_conversation(tenant)
        watch = await begin(watches, tenant, conversation_id=room)

        sign = await asyncio.wait_for(watch.read(), 10)

        assert (list(sign.events), sign.resume_token) == ([], watch.token)

    async def test_a_watch_is_to_be_resumed_after_a_while(
        self, tenant: Tenant, watches: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(watching, "MAX_WATCH_SECONDS", 0.0)
        room = await small_conversation(tenant)

        assert (await ending(await begin(watches, tenant, conversation_id=room))).reason == (
            "DEPENDENCY_UNAVAILABLE"
        )


async def ending_without_reading(watch: Watch) -> Failure:
    """How a watch ends whose answers are read only once the server has given it up."""

    async def running() -> float | None:
        return REGISTRY.get_sample_value("annals_watches")

    await eventually(running, lambda count: count == 0, timeout_s=30)
    return await ending(watch)


class TestBadInput:
    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({}, "conversation_id"),
            ({"conversation_id": "17"}, "conversation_id"),
            ({"agent_id": "17"}, "agent_id"),
            ({"conversation_id": str(uuid4()), "agent_id": str(uuid4())}, "agent_id"),
            ({"agent_id": str(uuid4()), "branch": 1}, "branch"),
            ({"agent_id": str(uuid4()), "after_seq": 1}, "after_seq"),
            ({"conversation_id": str(uuid4()), "branch": -1}, "branch"),
            ({"conversation_id": str(uuid4()), "after_seq": -1}, "after_seq"),
        ],
        ids=["nothing", "conversation", "agent", "both", "branch", "after", "low", "negative"],
    )
    async def test_fields_are_judged(
        self, tenant: Tenant, watches: Any, fields: Any, field: str
    ) -> None:
        refused = await failure(begin(watches, tenant, **fields))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))

    async def test_what_is_not_there_is_not_found(
        self, tenant: Tenant, other_tenant: Tenant, watches: Any
    ) -> None:
        agent, [room] = await agent_rooms(other_tenant)
        own = await small_conversation(tenant)
        deleted = await small_conversation(tenant)
        await tenant.client.conversations.delete(deleted)

        for fields in (
            {"conversation_id": room},
            {"conversation_id": str(uuid4())},
            {"conversation_id": deleted},
            {"conversation_id": own, "branch": 9},
            {"agent_id": agent},
            {"agent_id": str(uuid4())},
        ):
            refused = await failure(begin(watches, tenant, **fields))
            assert (refused.code.name, refused.reason) == ("NOT_FOUND", "RESOURCE_NOT_FOUND")

    async def test_tokens_are_bound_to_their_watch(self, tenant: Tenant, watches: Any) -> None:
        agent, [room] = await agent_rooms(tenant)
        other = await empty_conversation(tenant)
        token = (await begin(watches, tenant, conversation_id=room)).token

        for fields in (
            {"conversation_id": other},
            {"agent_id": agent},
            {"conversation_id": room, "branch": 1},
        ):
            refused = await failure(begin(watches, tenant, **fields, resume_token=token))
            assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("resume_token",))

    @pytest.mark.parametrize("token", ["x", "💣", "W10", "W1tdXQ", "A" * 9_000, "e30", " "])
    async def test_garbage_is_refused(self, tenant: Tenant, watches: Any, token: str) -> None:
        room = await empty_conversation(tenant)

        refused = await failure(begin(watches, tenant, conversation_id=room, resume_token=token))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("resume_token",))

    @pytest.mark.parametrize(
        ("place", "value"), [(1, "other.00000001"), (4, str(2**40)), (2, str(2**62))]
    )
    async def test_tokens_of_before_a_restore_are_refused(
        self, tenant: Tenant, watches: Any, place: int, value: str
    ) -> None:
        agent, [room] = await agent_rooms(tenant)
        fields = {"agent_id": agent} if place == 2 else {"conversation_id": room}
        parts = _parts((await begin(watches, tenant, **fields)).token)
        parts[place] = value

        refused = await failure(begin(watches, tenant, **fields, resume_token=_token(parts)))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("resume_token",))
        assert "restored" in refused.message


def _parts(token: str) -> list[str]:
    found: list[str] = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return found


def _token(parts: list[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")
