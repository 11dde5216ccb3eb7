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
        assert all(event.replayed for event in again.events)
        await check_counters(tenant, room, expected=["a", "b"])

    async def test_another_payload_is_refused(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        request_id = str(uuid4())
        await append(tenant.raw, room, user("a"), request_id=request_id)

        refused = await failure(append(tenant.raw, room, user("b"), request_id=request_id))

        assert refused.reason == "IDEMPOTENCY_KEY_REUSED"
        assert dict(refused.metadata)["request_id"] == request_id
        await check_counters(tenant, room, expected=["a"])

    async def test_fifty_at_once_store_once(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        request_id = str(uuid4())

        answers = await asyncio.gather(
            *[append(tenant.raw, room, user("once"), request_id=request_id) for _ in range(50)]
        )

        assert len({ids(answer)[0] for answer in answers}) == 1
        await check_counters(tenant, room, expected=["once"])

    async def test_a_failed_call_leaves_its_request_id_free(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        request_id = str(uuid4())
        await failure(
            append(tenant.raw, room, user("a"), request_id=request_id, expected_last_seq=7)
        )

        stored = await append(tenant.raw, room, user("b"), request_id=request_id)

        assert stored.last_seq == 1


class TestExpectedLastSeq:
    async def test_that_holds_is_stored(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        await append(tenant.raw, room, user("a"), user("b"), expected_last_seq=0)
        stored = await append(tenant.raw, room, user("c"), expected_last_seq=2)

        assert stored.last_seq == 3

    async def test_that_does_not_hold_stores_nothing(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await append(tenant.raw, room, user("a"))

        refused = await failure(append(tenant.raw, room, user("b"), expected_last_seq=0))

        assert refused.code is grpc.StatusCode.ABORTED
        assert refused.reason == "SEQ_MISMATCH"
        assert refused.metadata == (("expected_last_seq", "0"), ("last_seq", "1"))
        await check_counters(tenant, room, expected=["a"])

    async def test_of_twenty_writers_exactly_one_wins(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        outcomes = await asyncio.gather(
            *[
                outcome(append(tenant.raw, room, user(str(n)), expected_last_seq=0))
                for n in range(20)
            ]
        )

        won = [one for one in outcomes if isinstance(one, pb.AppendEventsResponse)]
        lost = [one for one in outcomes if not isinstance(one, pb.AppendEventsResponse)]
        assert len(won) == 1
        assert {(one.reason, dict(one.metadata)["last_seq"]) for one in lost} == {
            ("SEQ_MISMATCH", "1")
        }
        assert len(await check_counters(tenant, room)) == 1

    @pytest.mark.parametrize("keyed", [{"idempotency_key": "k"}, {}], ids=["key", "request_id"])
    async def test_is_not_checked_for_a_retry(self, tenant: Tenant, keyed: dict[str, str]) -> None:
        room = await empty_conversation(tenant)
        fields = {"expected_last_seq": 0, "request_id": "" if keyed else str(uuid4())}
        first = await append(tenant.raw, room, user("a", **keyed), **fields)

        again = await append(tenant.raw, room, user("a", **keyed), **fields)

        assert ids(again) == ids(first)


class TestAnonymousConversations:
    async def test_are_created_with_agent_and_session(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("a")

        stored = await append(
            tenant.raw, "", user("hi"), agent_id=agent.agent_id, session_id="tab-1"
        )

        made = await state(tenant.raw, stored.conversation_id)
        assert (made.agent_id, made.session_id) == (agent.agent_id, "tab-1")
        assert (made.last_seq, made.event_count, made.message_count) == (1, 1, 1)
        assert made.last_event_time == stored.events[0].create_time

    async def test_are_new_for_every_call_without_a_key(self, tenant: Tenant) -> None:
        answers = [await append(tenant.raw, "", user("hi")) for _ in range(2)]

        assert len({answer.conversation_id for answer in answers}) == 2

    @pytest.mark.parametrize("by", ["request_id", "key of the first event"])
    @pytest.mark.parametrize("attempts", [2, 20])
    async def test_are_found_again_by_retries(self, tenant: Tenant, by: str, attempts: int) -> None:
        key = {} if by == "request_id" else {"idempotency_key": "k"}
        request_id = str(uuid4()) if by == "request_id" else ""

        answers = await asyncio.gather(
            *[
                append(tenant.raw, "", user("hi", **key), request_id=request_id)
                for _ in range(attempts)
            ]
        )

        assert len({answer.conversation_id for answer in answers}) == 1
        assert len({tuple(ids(answer)) for answer in answers}) == 1
        assert len([c async for c in tenant.client.conversations.list()]) == 1
        await check_counters(tenant, answers[0].conversation_id)

    async def test_refuse_a_retry_with_another_payload(self, tenant: Tenant) -> None:
        request_id = str(uuid4())
        await append(tenant.raw, "", user("a"), request_id=request_id)

        refused = await failure(append(tenant.raw, "", user("b"), request_id=request_id))

        assert refused.reason == "IDEMPOTENCY_KEY_REUSED"
        assert len([c async for c in tenant.client.conversations.list()]) == 1

    async def test_are_not_created_for_an_unknown_agent(self, tenant: Tenant) -> None:
        refused = await failure(append(tenant.raw, "", user("a"), agent_id=str(uuid4())))

        assert refused.reason == "RESOURCE_NOT_FOUND"
        assert [c async for c in tenant.client.conversations.list()] == []

    @pytest.mark.parametrize("field", [{"agent_id": str(uuid4())}, {"session_id": "s"}])
    async def test_alone_take_agent_and_session(
        self, tenant: Tenant, field: dict[str, str]
    ) -> None:
        room = await empty_conversation(tenant)

        refused = await failure(append(tenant.raw, room, user("a"), **field))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", tuple(field))


class TestConcurrentWriters:
    @pytest.mark.parametrize("rooms", [1, 8], ids=["one conversation", "eight conversations"])
    async def test_thirty_two_leave_no_gap_and_exact_counters(
        self, tenant: Tenant, rooms: int
    ) -> None:
        where = [await empty_conversation(tenant) for _ in range(rooms)]

        async def write(writer: int) -> list[pb.AppendEventsResponse]:
            room = where[writer % rooms]
            return [
                await append(tenant.raw, room, *[user(f"{writer} {n} {i}") for i in range(n + 1)])
                for n in range(4)
            ]

        answers = [a for own in await asyncio.gather(*map(write, range(32))) for a in own]

        for room in where:
            acknowledged = {
                event.event_id: event.seq
                for answer in answers
                if answer.conversation_id == room
                for event in answer.events
            }
            found = await check_counters(tenant, room)
            assert {event.event_id: event.seq for event in found} == acknowledged
        for answer in answers:
            assert seqs(answer) == list(range(seqs(answer)[0], seqs(answer)[-1] + 1))

    async def test_each_learns_the_last_seq_that_its_own_events_made(self, tenant: Tenant) -> None:
        # A writer that goes on with expected_last_seq must not skip events it never saw.
        room = await empty_conversation(tenant)

        answers = await asyncio.gather(*[append(tenant.raw, room, user(str(n))) for n in range(32)])

        assert all(answer.last_seq == seqs(answer)[-1] for answer in answers)

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
