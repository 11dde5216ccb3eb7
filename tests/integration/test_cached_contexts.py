"""Contexts that were assembled before: returned while nothing changed, and to nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests.support.context import RunningContext, running_context
from tests.support.indexing import hold_back
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals.context.v1 import context_service_pb2 as pb
from annals_client import AsyncAnnalsClient, assistant, user
from annals_client.errors import AnnalsRpcError
from annals_context.settings import CacheSettings
from annals_local.postgres import LocalPostgres

ANEW = pb.CONTEXT_CACHE_TIER_NONE
PROCESS = pb.CONTEXT_CACHE_TIER_PROCESS
SHARED = pb.CONTEXT_CACHE_TIER_SHARED


@pytest.fixture(scope="module")
async def other_context(storage: RunningStorage) -> AsyncIterator[RunningContext]:
    """A second replica."""
    async with running_context(storage.address) as it:
        yield it


class Asking:
    """A client of two replicas and a conversation."""

    def __init__(self, clients: list[AsyncAnnalsClient], room: str) -> None:
        self.clients, self.room = clients, room

    async def __call__(self, *, replica: int = 0, **fields: Any) -> pb.PrepareContextResponse:
        wanted = {"budget_tokens": 300, "query": "anchor", "timeout": 30, **fields}
        return await self.clients[replica].context.prepare(self.room, **wanted)

    async def kept(self, tier: int = PROCESS, **fields: Any) -> pb.PrepareContextResponse:
        """Ask until the answer comes from there: contexts are kept behind the answers."""

        async def ask() -> pb.PrepareContextResponse:
            return await self(**fields)

        return await eventually(ask, lambda answer: answer.cached == tier)


@pytest.fixture
async def asking(
    storage: RunningStorage, context: RunningContext, other_context: RunningContext, tenant: Tenant
) -> AsyncIterator[Asking]:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                AsyncAnnalsClient(storage.address, each.address, api_key=tenant.api_key)
            )
            for each in (context, other_context)
        ]
        agent = await clients[0].agents.create("a", system_prompt="Be brief.")
        made = await clients[0].conversations.create(agent_id=agent.agent_id, user_id="u")
        notes = [user(f"Note {i}: the weather was grey.") for i in range(20)]
        fact = user("The spare anchor is in shed seven.")
        await clients[0].events.append(made.conversation_id, [fact, *notes])
        yield Asking(clients, made.conversation_id)


def without_reuse(answer: pb.PrepareContextResponse) -> bytes:
    bare = pb.PrepareContextResponse()
    bare.CopyFrom(answer)
    for name in (
        "cached",
        "previous_context_version",
        "shared_prefix_bytes",
        "shared_prefix_tokens",
    ):
        bare.ClearField(name)
    return bare.SerializeToString(deterministic=True)


class TestTiers:
    async def test_the_same_request_is_answered_from_the_process_and_by_another(
        self, asking: Asking
    ) -> None:
        first = await asking(read_your_writes=True)
        again = await asking.kept(read_your_writes=True)
        elsewhere = await asking(replica=1, read_your_writes=True)
        there_again = await asking(replica=1, read_your_writes=True)

        assert (first.cached, elsewhere.cached, there_again.cached) == (ANEW, SHARED, PROCESS)
        assert len({without_reuse(each) for each in (first, again, elsewhere, there_again)}) == 1

    async def test_every_field_of_the_request_counts(self, asking: Asking) -> None:
        await asking.kept()

        others = [
            await asking(**fields)
            for fields in (
                {"query": "weather"},
                {"budget_tokens": 301},
                {"model": "gpt-4"},
                {"payload_format": "text"},
                {"current_message": "Where?"},
                {"relevant_events": 3},
                {"branch": 1},
            )
        ]

        assert {each.cached for each in others} == {ANEW}

    async def test_an_appended_event_is_in_the_next_context(self, asking: Asking) -> None:
        before = await asking.kept()
        await asking.clients[0].events.append(asking.room, [assistant("It moved to shed nine.")])

        after = [await asking(replica=replica) for replica in (0, 1)]

        assert [each.cached for each in after] == [ANEW, ANEW]
        assert all("shed nine" in each.payload for each in after)
        assert after[0].conversation_version > before.conversation_version

    async def test_a_changed_agent_speaks_in_the_next_context(self, asking: Asking) -> None:
        await asking.kept()
        client = asking.clients[0]
        conversation = await client.conversations.get(asking.room)
        await client.agents.update(conversation.agent_id, system_prompt="Be long.")

        after = await asking()

        assert after.cached == ANEW
        assert "Be long." in after.payload

    async def test_what_waits_to_be_indexed_is_not_kept(
        self, asking: Asking, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        await asking.kept()
        hold_back(postgres, tenant, asking.room)
        unsettled = value("annals_context_cache_puts_total", outcome="unsettled")

        answers = [await asking(query=f"anchor {n % 2}") for n in range(4)]

        assert {each.cached for each in answers} == {ANEW}
        assert value("annals_context_cache_puts_total", outcome="unsettled") == unsettled + 4


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


class TestCallers:
    async def test_whoever_may_not_read_the_conversation_gets_no_hit(
        self,
        asking: Asking,
        storage: RunningStorage,
        context: RunningContext,
        tenant: Tenant,
        other_tenant: Tenant,
    ) -> None:
        await asking.kept()
        end_user = {"api_key": tenant.api_key, "user_id": "u"}
        stranger = {"api_key": other_tenant.api_key}
        refused = []
        for identity in (end_user, stranger):
            async with AsyncAnnalsClient(storage.address, context.address, **identity) as client:
                with pytest.raises(AnnalsRpcError) as caught:
                    await Asking([client], asking.room)()
                refused.append(caught.value.reason)

        assert refused == ["SCOPE_MISSING", "RESOURCE_NOT_FOUND"]

    async def test_a_deleted_conversation_is_not_answered(self, asking: Asking) -> None:
        await asking.kept()
        await asking.clients[0].conversations.delete(asking.room)

        with pytest.raises(AnnalsRpcError) as caught:
            await asking()

        assert caught.value.reason == "RESOURCE_NOT_FOUND"

    async def test_a_revoked_key_gets_no_hit(
        self, asking: Asking, storage: RunningStorage, context: RunningContext, tenant: Tenant
    ) -> None:
        made = await asking.clients[0].keys.create("k", tenant_id=tenant.tenant_id)
        async with AsyncAnnalsClient(
            storage.address, context.address, api_key=made.api_key_secret
        ) as client:
            theirs = Asking([client], asking.room)
            await theirs.kept()
            await asking.clients[0].keys.revoke(made.api_key.api_key_id)

            with pytest.raises(AnnalsRpcError) as caught:
                await theirs()

        assert caught.value.reason == "CREDENTIALS_INVALID"


class TestPrefix:
    async def test_it_is_reported_against_the_last_of_the_kind(self, asking: Asking) -> None:
        text = {"payload_format": "text", "relevant_events": 0, "budget_tokens": 2_000}
        first = await asking(**text)
        await asking.clients[0].events.append(asking.room, [assistant("Noted.")])
        second = await asking(**text, current_message="And now?")

        shared = second.payload.encode()[: second.shared_prefix_bytes]
        assert (first.previous_context_version, first.shared_prefix_bytes) == ("", 0)
        assert second.previous_context_version == first.context_version
        assert first.payload.encode().startswith(shared)
        assert len(shared) > 0.8 * len(first.payload.encode())
        assert 0 < second.shared_prefix_tokens < second.total_tokens

    async def test_the_same_context_is_shared_whole(self, asking: Asking) -> None:
        await asking()

        again = await asking()

        assert again.shared_prefix_bytes == len(again.payload.encode())
        assert again.shared_prefix_tokens == again.total_tokens

    async def test_a_version_to_compare_with_is_found_at_another_replica(
        self, asking: Asking
    ) -> None:
        first = await asking.kept()
        await asking.clients[0].events.append(asking.room, [assistant("Noted.")])

        pinned = await asking(replica=1, previous_context_version=first.context_version)
        unknown = await asking(replica=1, previous_context_version="0" * 16)

        assert pinned.previous_context_version == first.context_version
        assert pinned.shared_prefix_bytes > 0
        assert (unknown.previous_context_version, unknown.shared_prefix_bytes) == ("", 0)

    async def test_a_version_of_control_characters_is_refused(self, asking: Asking) -> None:
        with pytest.raises(AnnalsRpcError) as caught:
            await asking(previous_context_version="a\nb")

        assert [each.field for each in caught.value.violations] == ["previous_context_version"]


class TestSettings:
    async def test_without_a_cache_every_context_is_assembled(
        self, storage: RunningStorage, asking: Asking, tenant: Tenant
    ) -> None:
        await asking.kept()
        off = CacheSettings(process_bytes=0)
        async with (
            running_context(storage.address, cache=off) as context,
            AsyncAnnalsClient(storage.address, context.address, api_key=tenant.api_key) as client,
        ):
            answers = [await Asking([client], asking.room)() for _ in range(2)]

        assert {(each.cached, each.shared_prefix_bytes) for each in answers} == {(ANEW, 0)}

    async def test_of_its_own_alone_a_process_shares_nothing(
        self, storage: RunningStorage, asking: Asking, tenant: Tenant
    ) -> None:
        await asking.kept()
        own = CacheSettings(shared=False)
        async with (
            running_context(storage.address, cache=own) as context,
            AsyncAnnalsClient(storage.address, context.address, api_key=tenant.api_key) as client,
        ):
            alone = Asking([client], asking.room)
            first = await alone()
            assert (await alone.kept()).payload == first.payload
            await alone.kept(query="weather")

        assert first.cached == ANEW
        assert (await asking(query="weather")).cached == ANEW
