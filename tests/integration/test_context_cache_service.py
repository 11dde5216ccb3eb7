"""Contexts that storage keeps: never of another state, never too many, gone with their events."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.support.appending import append, ids
from tests.support.changing import edit
from tests.support.indexing import indexed
from tests.support.raw import failure
from tests.support.scratch import run
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.summaries import put, summary_of
from tests.support.waiting import eventually

from annals.storage.v1 import context_cache_service_pb2 as pb
from annals.storage.v1 import erasure_service_pb2 as erasure_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import summary_service_pb2 as summary_pb
from annals.storage.v1 import tenant_service_pb2 as tenant_pb
from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.context_cache import CacheLimits, NewContext, WantedContext
from annals_storage.postgres.context_cache import MAX_OF_CONVERSATION, PostgresContextCache

DIGEST = b"d" * 32
LIMITS = CacheLimits(ttl_seconds=60, body_bytes=1_000, tenant_bytes=10_000)


@dataclass(frozen=True, slots=True)
class Room:
    """A conversation of a tenant, indexed."""

    tenant: Tenant
    conversation_id: str
    event_ids: list[str]

    async def get(self, digest: bytes = DIGEST, **fields: Any) -> pb.GetCachedContextResponse:
        request = pb.GetCachedContextRequest(
            conversation_id=self.conversation_id, request_digest=digest, **fields
        )
        return await self.tenant.raw.call("GetCachedContext", request)

    async def put(self, state: bytes, body: bytes = b"body") -> pb.PutCachedContextResponse:
        request = pb.PutCachedContextRequest(
            conversation_id=self.conversation_id,
            request_digest=DIGEST,
            state=state,
            context_version="v1",
            body=body,
        )
        return await self.tenant.raw.call("PutCachedContext", request)

    async def settled(self) -> bytes:
        await indexed(self.tenant)
        state = (await self.get()).state
        assert len(state) == 32
        return state

    async def keep(self, body: bytes = b"body") -> bytes:
        state = await self.settled()
        assert (await self.put(state, body)).kept
        return state


async def room_of(tenant: Tenant) -> Room:
    agent = await tenant.client.agents.create("a", system_prompt="Be brief.")
    made = await tenant.client.conversations.create(agent_id=agent.agent_id, user_id="u")
    stored = await append(tenant.raw, made.conversation_id, user("one"), user("two"))
    return Room(tenant, made.conversation_id, ids(stored))


@pytest.fixture
async def room(tenant: Tenant) -> Room:
    return await room_of(tenant)


class TestState:
    async def test_what_was_kept_is_returned_in_the_same_state_only(self, room: Room) -> None:
        state = await room.keep(b"as it was")

        found = await room.get()

        assert (found.state, found.body) == (state, b"as it was")
        assert (await room.get(b"e" * 32)).body == b""
        assert (await room.get(held_state=state)).body == b""
        assert (await room.get(held_state=b"x" * 32)).body == b"as it was"

    async def test_every_change_makes_another_state(self, room: Room) -> None:
        states = [await room.keep()]
        for change in (
            _append,
            _edit,
            _delete_event,
            _restore_event,
            _revert,
            _update_agent,
            _rename,
        ):
            await change(room)
            states.append(await room.settled())
            assert (await room.get()).body == b"", change

        assert len(set(states)) == len(states)

    async def test_summaries_that_come_and_go_make_another_state(self, room: Room) -> None:
        states = [await room.keep()]
        for change in (_summarise, _summarise, _delete_summary):
            await change(room)
            states.append(await room.settled())
            assert (await room.get()).body == b"", change

        assert len(set(states)) == len(states)

    async def test_search_parameters_that_just_changed_are_waited_for(self, room: Room) -> None:
        await room.keep()
        request = tenant_pb.UpdateSearchParametersRequest()
        request.parameters.time_bonus = 0.3
        request.update_mask.paths.append("time_bonus")
        await room.tenant.raw.call("UpdateSearchParameters", request)

        found = await room.get()

        # Other processes may still search by the former ones.
        assert (found.state, found.body) == (b"", b"")

    async def test_nothing_is_kept_while_events_wait_to_be_indexed(
        self, room: Room, postgres: LocalPostgres
    ) -> None:
        state = await room.keep()
        _enqueue(postgres, room)

        found = await room.get()

        assert (found.state, found.body) == (b"", b"")
        assert not (await room.put(state)).current

    async def test_other_code_makes_another_state(
        self, storage: RunningStorage, room: Room
    ) -> None:
        await room.settled()
        wanted = WantedContext(UUID(room.conversation_id), DIGEST)
        tenant_id = UUID(room.tenant.tenant_id)

        caches = [
            PostgresContextCache(storage.adapters.database, LIMITS, code)
            for code in ("one", "one", "two")
        ]
        states = {(await cache.get(tenant_id, wanted)).state for cache in caches}

        assert len(states) == 2

    async def test_what_changed_while_a_context_was_assembled_is_not_kept(self, room: Room) -> None:
        state = await room.settled()
        await _append(room)
        await room.settled()

        put = await room.put(state)

        assert (put.current, put.kept) == (False, False)
        assert (await room.get()).body == b""

    async def test_former_versions_are_there_to_compare_with(self, room: Room) -> None:
        await room.keep(b"former")
        await _append(room)

        found = await room.get(previous_context_version="v1")

        assert (found.body, found.previous_body) == (b"", b"former")
        assert (await room.get(previous_context_version="v2")).previous_body == b""


async def _append(room: Room) -> None:
    await append(room.tenant.raw, room.conversation_id, user("more"))


async def _edit(room: Room) -> None:
    change = event_pb.NewEvent(message=res.MessageBody(role=res.ROLE_USER, content="uno"))
    await edit(room.tenant.raw, room.event_ids[0], change, "body")


async def _delete_event(room: Room) -> None:
    await room.tenant.client.events.delete(room.event_ids[1])


async def _restore_event(room: Room) -> None:
    request = event_pb.RestoreEventRequest(event_id=room.event_ids[1])
    await room.tenant.raw.call("RestoreEvent", request)


async def _revert(room: Room) -> None:
    request = event_pb.RevertToEventRequest(
        conversation_id=room.conversation_id, event_id=room.event_ids[0]
    )
    await room.tenant.raw.call("RevertToEvent", request)


async def _summarise(room: Room) -> None:
    await put(room.tenant, room.conversation_id, summary_of(1, 2))


async def _delete_summary(room: Room) -> None:
    request = summary_pb.ListSummariesRequest(conversation_id=room.conversation_id)
    [stored] = (await room.tenant.raw.call("ListSummaries", request)).summaries
    await room.tenant.raw.call(
        "DeleteSummary", summary_pb.DeleteSummaryRequest(summary_id=stored.summary_id)
    )


async def _update_agent(room: Room) -> None:
    conversation = await room.tenant.client.conversations.get(room.conversation_id)
    request = tenant_pb.UpdateAgentRequest(
        agent=res.Agent(agent_id=conversation.agent_id, system_prompt="Be long.")
    )
    request.update_mask.paths.append("system_prompt")
    await room.tenant.raw.call("UpdateAgent", request)


async def _rename(room: Room) -> None:
    await room.tenant.client.conversations.update(room.conversation_id, title="another")


def _enqueue(postgres: LocalPostgres, room: Room) -> None:
    """An entry that nobody takes before the test has ended."""
    run(
        postgres.admin_url,
        "INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, available_at) "
        "VALUES (%(tenant_id)s, 'event', %(key)s, %(room)s, now() + interval '1 day')",
        {"tenant_id": room.tenant.tenant_id, "key": uuid4(), "room": room.conversation_id},
    )


class TestCallers:
    async def test_end_users_reach_nothing(self, room: Room) -> None:
        await room.keep()
        metadata = (*room.tenant.raw.metadata(), ("annals-user-id", "u"))
        request = pb.GetCachedContextRequest(
            conversation_id=room.conversation_id, request_digest=DIGEST
        )

        refused = await failure(
            room.tenant.raw.call("GetCachedContext", request, metadata=metadata)
        )

        assert refused.reason == "SCOPE_MISSING"

    async def test_other_tenants_reach_nothing(self, room: Room, other_tenant: Tenant) -> None:
        state = await room.keep()
        foreign = Room(other_tenant, room.conversation_id, [])

        refused = [await failure(foreign.get()), await failure(foreign.put(state))]

        assert [each.reason for each in refused] == ["RESOURCE_NOT_FOUND"] * 2
        assert (await room.get()).body == b"body"

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"request_digest": b"x"}, "request_digest"),
            ({"held_state": b"x"}, "held_state"),
            ({"previous_context_version": "x\n"}, "previous_context_version"),
            ({"conversation_id": "17"}, "conversation_id"),
        ],
    )
    async def test_fields_are_judged(self, room: Room, fields: Any, field: str) -> None:
        valid = {"conversation_id": room.conversation_id, "request_digest": DIGEST}
        request = pb.GetCachedContextRequest(**{**valid, **fields})

        refused = await failure(room.tenant.raw.call("GetCachedContext", request))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))


class TestBounds:
    @pytest.fixture
    def cache(self, storage: RunningStorage) -> PostgresContextCache:
        return PostgresContextCache(storage.adapters.database, LIMITS, "code")

    async def test_of_a_conversation_the_newest_are_kept(
        self, cache: PostgresContextCache, room: Room, postgres: LocalPostgres
    ) -> None:
        await room.settled()
        kept = [await _put(cache, room, n, 10) for n in range(MAX_OF_CONVERSATION + 3)]

        assert all(kept)
        assert _digests(postgres, room) == [_digest(n) for n in range(3, len(kept))]

    async def test_of_a_tenant_the_newest_bytes_are_kept(
        self, cache: PostgresContextCache, room: Room, postgres: LocalPostgres
    ) -> None:
        await room.settled()
        for n in range(13):
            await _put(cache, room, n, 1_000)

        assert _digests(postgres, room) == [_digest(n) for n in range(3, 13)]

    async def test_one_that_is_too_large_is_not_kept(
        self, cache: PostgresContextCache, room: Room, postgres: LocalPostgres
    ) -> None:
        await room.settled()

        assert await _put(cache, room, 0, 1_001) == (True, False)
        assert _digests(postgres, room) == []

    async def test_one_that_expired_is_not_returned_and_maintenance_removes_it(
        self, room: Room, storage: RunningStorage, postgres: LocalPostgres
    ) -> None:
        await room.keep()
        run(
            postgres.admin_url,
            "UPDATE annals.context_cache SET expires_at = now() WHERE conversation_id = %(room)s",
            {"room": room.conversation_id},
        )

        assert (await room.get()).body == b""
        assert (await room.get(previous_context_version="v1")).previous_body == b""
        done = await maintained(storage, room.tenant)
        assert done["cached_contexts"] == 1
        assert _digests(postgres, room) == []


async def maintained(storage: RunningStorage, tenant: Tenant) -> dict[str, int]:
    from annals_storage.app_lifecycle import lifecycle
    from annals_storage.commands.erasing_everywhere import ErasureEverywhere
    from annals_storage.commands.retaining import Maintain

    adapters = storage.adapters
    mirror = ErasureEverywhere(adapters.generations)
    parts = lifecycle(adapters.database, mirror, adapters.cold).maintenance()
    foreseen = await Maintain(parts).dry_run(UUID(tenant.tenant_id))
    done = await Maintain(parts)(UUID(tenant.tenant_id))
    assert foreseen["cached_contexts"] == done["cached_contexts"]
    return done


def _digest(number: int) -> bytes:
    return number.to_bytes(32, "big")


async def _put(cache: PostgresContextCache, room: Room, number: int, size: int) -> Any:
    tenant_id, room_id = UUID(room.tenant.tenant_id), UUID(room.conversation_id)
    found = await cache.get(tenant_id, WantedContext(room_id, _digest(number)))
    new = NewContext(room_id, _digest(number), found.state, "v", b"x" * size)
    return await cache.put(tenant_id, new)


def _digests(postgres: LocalPostgres, room: Room) -> list[bytes]:
    rows = run(
        postgres.admin_url,
        "SELECT request_digest FROM annals.context_cache "
        "WHERE conversation_id = %(room)s ORDER BY created_at",
        {"room": room.conversation_id},
    )
    return [row["request_digest"] for row in rows]


class TestErasure:
    async def test_of_an_event_takes_the_contexts_of_its_conversation(
        self, room: Room, postgres: LocalPostgres
    ) -> None:
        await room.keep()
        request = erasure_pb.EraseEventRequest(event_id=room.event_ids[0])

        erased = (await room.tenant.raw.call("EraseEvent", request)).receipt

        assert _digests(postgres, room) == []
        assert _counted(erased) == 1
        # What is assembled afterwards is not what the receipt is about.
        await room.keep()
        assert await _left(room.tenant, erased.receipt_id) == 0

    async def test_of_a_conversation_takes_its_contexts(
        self, room: Room, postgres: LocalPostgres
    ) -> None:
        await room.keep()
        request = erasure_pb.EraseConversationRequest(conversation_id=room.conversation_id)

        erased = (await room.tenant.raw.call("EraseConversation", request)).receipt

        assert _digests(postgres, room) == []
        assert _counted(erased) == 1
        assert await _left(room.tenant, erased.receipt_id) == 0

    async def test_of_a_user_takes_the_contexts_of_their_conversations(
        self, room: Room, postgres: LocalPostgres
    ) -> None:
        await room.keep()

        erased = (
            await room.tenant.raw.call("EraseUser", erasure_pb.EraseUserRequest(user_id="u"))
        ).receipt

        assert _digests(postgres, room) == []
        assert _counted(erased) == 1

    async def test_of_a_tenant_takes_all_of_its_contexts(
        self, storage: RunningStorage, postgres: LocalPostgres, admin: Any
    ) -> None:
        async with fresh_tenant(storage) as tenant:
            room = await room_of(tenant)
            await room.keep()
            found = await tenant.client.tenants.get(tenant.tenant_id)
            request = erasure_pb.EraseTenantRequest(
                tenant_id=tenant.tenant_id, confirm_display_name=found.display_name
            )

            erased = (await admin.call("EraseTenant", request, timeout_s=60)).receipt

        assert _digests(postgres, room) == []
        assert _counted(erased) == 1

    async def test_meanwhile_keeps_a_context_out(self, room: Room, postgres: LocalPostgres) -> None:
        state = await room.settled()
        async with await psycopg.AsyncConnection.connect(postgres.admin_url) as erasing:
            # As an erasure does: the lock, and then what makes another state.
            await erasing.execute(
                "SELECT FROM annals.conversations WHERE conversation_id = %s FOR UPDATE",
                [room.conversation_id],
            )
            putting = asyncio.create_task(room.put(state))
            await eventually(lambda: _blocked(postgres), bool)
            await erasing.execute(
                "UPDATE annals.conversations SET version = version + 1 WHERE conversation_id = %s",
                [room.conversation_id],
            )

        assert not (await putting).kept
        assert _digests(postgres, room) == []

    async def test_that_leaves_a_context_is_seen(self, room: Room, postgres: LocalPostgres) -> None:
        await room.keep()
        request = erasure_pb.EraseEventRequest(event_id=room.event_ids[0])
        receipt_id = (await room.tenant.raw.call("EraseEvent", request)).receipt.receipt_id
        await room.keep()
        run(
            postgres.admin_url,
            "UPDATE annals.context_cache SET created_at = now() - interval '1 hour' "
            "WHERE conversation_id = %(room)s",
            {"room": room.conversation_id},
        )

        assert await _left(room.tenant, receipt_id) == 1


_BLOCKED = """
SELECT count(*) AS n FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND usename = 'annals_app'
"""


async def _blocked(postgres: LocalPostgres) -> int:
    """How many sessions of storage wait for a lock, whichever statement they are at."""
    [row] = await asyncio.to_thread(run, postgres.admin_url, _BLOCKED)
    return int(row["n"])


def _counted(receipt: erasure_pb.ErasureReceipt) -> int:
    return {each.kind: each.count for each in receipt.counts}["cached_contexts"]


async def _left(tenant: Tenant, receipt_id: str) -> int:
    request = erasure_pb.VerifyErasureRequest(receipt_id=receipt_id)
    answer = await tenant.raw.call("VerifyErasure", request)
    return {each.kind: each.count for each in answer.remaining}["cached_contexts"]
