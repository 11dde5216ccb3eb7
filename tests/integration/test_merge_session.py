"""MergeSession: what a session wrote becomes its user's, once."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from tests.support.appending import append
from tests.support.end_users import create_agent, create_signer, metadata_of, publishable_key
from tests.support.raw import failure, outcome
from tests.support.scratch import as_tenant
from tests.support.storage import Tenant
from tests.support.waiting import eventually

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import user
from annals_local.postgres import LocalPostgres

SESSION, ALICE, BOB = "session-1", "alice", "bob"


async def merge(tenant: Tenant, **fields: Any) -> pb.MergeSessionResponse:
    metadata = fields.pop("metadata", None)
    request = pb.MergeSessionRequest(**{"session_id": SESSION, "user_id": ALICE, **fields})
    return await tenant.raw.call("MergeSession", request, metadata=metadata)


async def owners(tenant: Tenant, **query: str) -> set[str]:
    return {item.conversation_id async for item in tenant.client.conversations.list(**query)}


async def test_moves_the_sessions_conversations(tenant: Tenant) -> None:
    create = tenant.client.conversations.create
    mine = [await create(session_id=SESSION) for _ in range(3)]
    other = await create(session_id="another")

    merged = await merge(tenant)

    assert (merged.moved_count, merged.user_id) == (3, ALICE)
    assert merged.HasField("merge_time")
    assert await owners(tenant, user_id=ALICE) == {item.conversation_id for item in mine}
    assert await owners(tenant, session_id=SESSION) == set()
    assert await owners(tenant, session_id="another") == {other.conversation_id}
    moved = await tenant.client.conversations.get(mine[0].conversation_id)
    assert (moved.user_id, moved.session_id) == (ALICE, "")
    assert moved.version == mine[0].version + 1


async def test_repeated_moves_what_came_since(tenant: Tenant) -> None:
    await tenant.client.conversations.create(session_id=SESSION)
    first = await merge(tenant)
    again = await merge(tenant)
    late = await tenant.client.conversations.create(session_id=SESSION)
    more = await merge(tenant)

    assert (first.moved_count, again.moved_count, more.moved_count) == (1, 0, 1)
    assert first.merge_time == again.merge_time == more.merge_time
    assert late.conversation_id in await owners(tenant, user_id=ALICE)


async def test_into_a_second_user_is_refused(tenant: Tenant) -> None:
    await tenant.client.conversations.create(session_id=SESSION)
    await merge(tenant)
    late = await tenant.client.conversations.create(session_id=SESSION)

    refused = await failure(merge(tenant, user_id=BOB))

    assert (refused.code, refused.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "SESSION_ALREADY_MERGED",
    )
    assert refused.metadata == (("session_id", SESSION),)
    assert await owners(tenant, session_id=SESSION) == {late.conversation_id}
    assert await owners(tenant, user_id=BOB) == set()


async def test_of_two_users_at_once_one_wins_all(tenant: Tenant) -> None:
    made = [await tenant.client.conversations.create(session_id=SESSION) for _ in range(5)]

    merged = await asyncio.gather(
        *(outcome(merge(tenant, user_id=name)) for name in (ALICE, BOB) * 4)
    )

    winners = {item.user_id for item in merged if isinstance(item, pb.MergeSessionResponse)}
    assert len(winners) == 1
    assert sum(getattr(item, "moved_count", 0) for item in merged) == 5
    assert len(await owners(tenant, user_id=winners.pop())) == len(made)


async def test_together_with_appends_loses_nothing(tenant: Tenant) -> None:
    rooms = [await tenant.client.conversations.create(session_id=SESSION) for _ in range(4)]

    await asyncio.gather(
        merge(tenant),
        *(append(tenant.raw, room.conversation_id, user("hi")) for room in rooms * 5),
    )

    for room in rooms:
        found = await tenant.client.conversations.get(room.conversation_id)
        assert (found.user_id, found.event_count) == (ALICE, 5)


async def test_is_audited(tenant: Tenant, postgres: LocalPostgres) -> None:
    await tenant.client.conversations.create(session_id=SESSION)
    await merge(tenant)
    await tenant.client.conversations.create(session_id=SESSION)
    await merge(tenant)

    [row] = as_tenant(postgres.app_url, tenant.tenant_id, "SELECT * FROM annals.session_merges")

    caller = await tenant.raw.call("GetCaller")
    assert (row["session_id"], row["user_id"], row["moved_count"]) == (SESSION, ALICE, 2)
    assert str(row["api_key_id"]) == caller.api_key_id
    assert row["updated_at"] > row["merged_at"]


async def test_reaches_search_through_the_mirror(tenant: Tenant) -> None:
    room = await tenant.client.conversations.create(session_id=SESSION)
    await append(tenant.raw, room.conversation_id, user("the heron by the lighthouse"))
    await merge(tenant)
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)

    found = await tenant.client.search.events("heron lighthouse", user_id=ALICE)
    gone = await tenant.client.search.events("heron lighthouse", session_id=SESSION)

    assert [hit.event.conversation_id for hit in found.hits] == [room.conversation_id]
    assert list(gone.hits) == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"session_id": ""}, "session_id"),
        ({"user_id": ""}, "user_id"),
        ({"session_id": "x" * 257}, "session_id"),
        ({"user_id": "x" * 257}, "user_id"),
        ({"session_id": "a\x00"}, "session_id"),
    ],
)
async def test_bad_input_is_refused(tenant: Tenant, fields: dict[str, str], field: str) -> None:
    refused = await failure(merge(tenant, **fields))

    assert refused.fields == (field,)


class TestByEndUsers:
    """With a publishable key: one's own session, into the user a token proves."""

    @pytest.fixture
    async def agent(self, tenant: Tenant) -> str:
        return await create_agent(tenant)

    async def test_take_their_session_along(self, tenant: Tenant, agent: str) -> None:
        secret, signer = await publishable_key(tenant, agent), await create_signer(tenant)
        mine = await tenant.client.conversations.create(agent_id=agent, session_id=SESSION)
        elsewhere = await tenant.client.conversations.create(session_id=SESSION)

        merged = await merge(
            tenant,
            user_id="",
            metadata=metadata_of(secret, session_id=SESSION, token=signer.sign(ALICE)),
        )

        assert (merged.moved_count, merged.user_id) == (1, ALICE)
        assert await owners(tenant, user_id=ALICE) == {mine.conversation_id}
        assert await owners(tenant, session_id=SESSION) == {elsewhere.conversation_id}

    async def test_of_another_session_are_refused(self, tenant: Tenant, agent: str) -> None:
        secret, signer = await publishable_key(tenant, agent), await create_signer(tenant)
        theirs = await tenant.client.conversations.create(agent_id=agent, session_id="theirs")

        for session_id in ("mine", None):
            refused = await failure(
                merge(
                    tenant,
                    session_id="theirs",
                    user_id="",
                    metadata=metadata_of(secret, session_id=session_id, token=signer.sign(ALICE)),
                )
            )
            assert refused.fields == ("session_id",)
        assert await owners(tenant, session_id="theirs") == {theirs.conversation_id}

    @pytest.mark.parametrize("user_id", [None, ALICE], ids=["anonymous", "unproved"])
    @pytest.mark.parametrize("kind", ["publishable", "secret"])
    async def test_without_a_token_are_refused(
        self, tenant: Tenant, agent: str, user_id: str | None, kind: str
    ) -> None:
        key = tenant.api_key if kind == "secret" else await publishable_key(tenant, agent)
        await tenant.client.conversations.create(agent_id=agent, session_id=SESSION)

        refused = await failure(
            merge(tenant, metadata=metadata_of(key, session_id=SESSION, user_id=user_id))
        )

        assert (refused.code, refused.reason) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "USER_TOKEN_REQUIRED",
        )
        assert await owners(tenant, user_id=ALICE) == set()

    async def test_into_another_user_than_proved_are_refused(
        self, tenant: Tenant, agent: str
    ) -> None:
        secret, signer = await publishable_key(tenant, agent), await create_signer(tenant)
        metadata = metadata_of(secret, session_id=SESSION, token=signer.sign(ALICE))

        refused = await failure(merge(tenant, user_id=BOB, metadata=metadata))

        assert refused.fields == ("user_id",)

    async def test_of_anonymous_agents_are_refused(self, tenant: Tenant) -> None:
        agent = await create_agent(tenant, res.END_USER_MODE_ANONYMOUS)
        secret, signer = await publishable_key(tenant, agent), await create_signer(tenant)
        metadata = metadata_of(secret, session_id=SESSION, token=signer.sign(ALICE))

        refused = await failure(merge(tenant, user_id="", metadata=metadata))

        assert refused.fields == ("annals-user-token",)
