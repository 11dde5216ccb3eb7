"""Retries are safe: idempotency keys, request ids, anonymous conversations, expected seq."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import grpc
import pytest
from tests.support.appending import (
    append,
    check_counters,
    empty_conversation,
    ids,
    listed,
    seqs,
    state,
)
from tests.support.raw import failure, outcome
from tests.support.storage import Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import assistant, user


class TestIdempotencyKeys:
    async def test_a_retry_returns_the_first_result(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        first = await append(tenant.raw, room, user("a", idempotency_key="k"))

        again = await append(tenant.raw, room, user("a", idempotency_key="k"))

        assert ids(again) == ids(first)
        assert (seqs(again), again.last_seq) == ([1], 1)
        assert [event.replayed for event in again.events] == [True]
        assert again.events[0].create_time == first.events[0].create_time
        await check_counters(tenant, room, expected=["a"])

    async def test_new_events_beside_replayed_ones_are_stored(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await append(tenant.raw, room, user("a", idempotency_key="a"))

        mixed = await append(
            tenant.raw,
            room,
            user("b", idempotency_key="b"),
            user("a", idempotency_key="a"),
            user("c"),
        )

        assert seqs(mixed) == [2, 1, 3]
        assert [event.replayed for event in mixed.events] == [False, True, False]
        await check_counters(tenant, room, expected=["a", "b", "c"])

    async def test_another_payload_is_refused_and_stores_nothing(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        first = await append(tenant.raw, room, user("a", idempotency_key="k"))
        before = await state(tenant.raw, room)

        refused = await failure(
            append(tenant.raw, room, user("new"), user("other", idempotency_key="k"))
        )

        assert refused.code is grpc.StatusCode.FAILED_PRECONDITION
        assert refused.reason == "IDEMPOTENCY_KEY_REUSED"
        assert dict(refused.metadata)["idempotency_key"] == "k"
        assert ids(first)[0] in dict(refused.metadata).values()
        assert await state(tenant.raw, room) == before

    @pytest.mark.parametrize(
        "other",
        [
            assistant("a", idempotency_key="k"),
            user("a", idempotency_key="k", model="m"),
            user("a", idempotency_key="k", metadata={"x": 1}),
            user("a ", idempotency_key="k"),
        ],
        ids=["role", "model", "metadata", "a space"],
    )
    async def test_any_difference_counts(self, tenant: Tenant, other: pb.NewEvent) -> None:
        room = await empty_conversation(tenant)
        await append(tenant.raw, room, user("a", idempotency_key="k"))

        refused = await failure(append(tenant.raw, room, other))

        assert refused.reason == "IDEMPOTENCY_KEY_REUSED"

    async def test_fifty_at_once_store_one_event(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        answers = await asyncio.gather(
            *[append(tenant.raw, room, user("once", idempotency_key="k")) for _ in range(50)]
        )

        assert len({ids(answer)[0] for answer in answers}) == 1
        assert sum(not answer.events[0].replayed for answer in answers) == 1
        await check_counters(tenant, room, expected=["once"])

    async def test_fifty_payloads_at_once_store_one_of_them(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        outcomes = await asyncio.gather(
            *[
                outcome(append(tenant.raw, room, user(str(n), idempotency_key="k")))
                for n in range(50)
            ]
        )

        won = [one for one in outcomes if isinstance(one, pb.AppendEventsResponse)]
        lost = [one for one in outcomes if not isinstance(one, pb.AppendEventsResponse)]
        assert len(won) == 1
        assert {one.reason for one in lost} == {"IDEMPOTENCY_KEY_REUSED"}
        assert len(await check_counters(tenant, room)) == 1

    async def test_the_same_key_in_two_conversations_is_two_keys(self, tenant: Tenant) -> None:
        rooms = [await empty_conversation(tenant) for _ in range(2)]

        answers = [await append(tenant.raw, r, user(r, idempotency_key="k")) for r in rooms]

        assert [answer.events[0].replayed for answer in answers] == [False, False]

    async def test_a_retry_is_answered_after_the_end(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        first = await append(tenant.raw, room, user("a", idempotency_key="k"))
        await tenant.client.conversations.end(room)

        again = await append(tenant.raw, room, user("a", idempotency_key="k"))

        assert ids(again) == ids(first)

    async def test_a_failed_call_leaves_its_key_free(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await failure(append(tenant.raw, room, user("a", idempotency_key="k"), pb.NewEvent()))

        stored = await append(tenant.raw, room, user("another", idempotency_key="k"))

        assert not stored.events[0].replayed


class TestRequestIds:
    async def test_a_retry_returns_the_first_result(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        request_id = str(uuid4())
        first = await append(tenant.raw, room, user("a"), user("b"), request_id=request_id)

        again = await append(tenant.raw, room, user("a"), user("b"), request_id=request_id.upper())

        assert ids(again) == ids(first)
        assert seqs(again) == [1, 2]
        for answer in answers:
            assert seqs(answer) == list(range(seqs(answer)[0], answer.last_seq + 1))
        for room in where:
            found = await check_counters(tenant, room)
            acknowledged = {e.event_id: e.seq for a in answers if a.conversation_id == room
                            for e in a.events}  # fmt: skip
            assert {event.event_id: event.seq for event in found} == acknowledged

    async def test_a_writers_own_order_is_kept(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        async def write(writer: int) -> None:
            for number in range(10):
                await append(tenant.raw, room, user(f"{writer}:{number}"))

        await asyncio.gather(*map(write, range(8)))

        contents = [event.message.content for event in await listed(tenant, room, page_size=1000)]
        for writer in range(8):
            own = [text for text in contents if text.startswith(f"{writer}:")]
            assert own == [f"{writer}:{number}" for number in range(10)]
