"""StreamAppendEvents: acknowledged progress, in order; a failing batch ends the stream."""

from __future__ import annotations

from typing import Any

import grpc.aio
import pytest
from tests.support.appending import check_counters, empty_conversation, listed
from tests.support.raw import Failure, failure, failure_of
from tests.support.storage import Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import user


def batch(room: str, *contents: str, key: str = "") -> pb.StreamAppendEventsRequest:
    events = [user(text, idempotency_key=f"{key}{text}" if key else "") for text in contents]
    append = pb.AppendEventsRequest(conversation_id=room, events=events)
    return pb.StreamAppendEventsRequest(append=append)


async def send(
    tenant: Tenant, *batches: pb.StreamAppendEventsRequest
) -> tuple[list[pb.StreamAppendEventsResponse], Failure | None]:
    """Send all batches; return what was acknowledged and how the stream failed."""
    stream = tenant.raw.stream_append()
    for one in batches:
        try:
            await stream.write(one)
        except grpc.aio.AioRpcError:
            break
    acknowledged: list[pb.StreamAppendEventsResponse] = []
    try:
        await stream.done_writing()
        async for response in stream:
            acknowledged.append(response)  # noqa: PERF401 - keeps what came before a failure
    except grpc.aio.AioRpcError as error:
        return acknowledged, failure_of(error)
    return acknowledged, None


def figures(response: pb.StreamAppendEventsResponse) -> tuple[int, int, int, int]:
    r = response
    return r.acknowledged_batches, r.acknowledged_events, r.replayed_events, r.last_seq


async def test_acknowledgements_are_cumulative_and_in_order(tenant: Tenant) -> None:
    room, other = await empty_conversation(tenant), await empty_conversation(tenant)

    acks, failed = await send(
        tenant, batch(room, "a", "b"), batch(other, "x"), batch(room, "c", "d", "e")
    )

    assert failed is None
    assert [figures(ack) for ack in acks] == [(1, 2, 0, 2), (2, 3, 0, 1), (3, 6, 0, 5)]
    assert [ack.conversation_id for ack in acks] == [room, other, room]
    await check_counters(tenant, room, expected=list("abcde"))


async def test_a_batch_is_acknowledged_before_the_next_is_sent(tenant: Tenant) -> None:
    room = await empty_conversation(tenant)
    stream = tenant.raw.stream_append()

    for number in range(1, 6):
        await stream.write(batch(room, str(number)))
        ack: Any = await stream.read()
        assert figures(ack) == (number, number, 0, number)
        assert len(await listed(tenant, room)) == number
    await stream.done_writing()

    assert await stream.read() is grpc.aio.EOF


async def test_a_failing_batch_ends_the_stream_and_earlier_ones_stay(tenant: Tenant) -> None:
    room = await empty_conversation(tenant)
    bad = batch(room, "c")
    bad.append.events.add()

    acks, failed = await send(tenant, batch(room, "a"), batch(room, "b"), bad, batch(room, "d"))

    assert failed is not None
    assert (failed.reason, failed.fields) == ("FIELD_INVALID", ("events[1].body",))
    assert [figures(ack)[0] for ack in acks] == [1, 2]
    await check_counters(tenant, room, expected=["a", "b"])


async def test_a_resumed_load_stores_nothing_twice(tenant: Tenant) -> None:
    room = await empty_conversation(tenant)
    batches = [batch(room, f"{n}a", f"{n}b", key="load ") for n in range(4)]
    await send(tenant, *batches[:2])

    acks, failed = await send(tenant, *batches)

    assert failed is None
    assert figures(acks[-1]) == (4, 8, 4, 8)
    await check_counters(tenant, room, expected=[f"{n}{x}" for n in range(4) for x in "ab"])


async def test_an_empty_stream_is_no_error(tenant: Tenant) -> None:
    assert await send(tenant) == ([], None)


async def test_a_batch_without_events_is_refused(tenant: Tenant) -> None:
    _, failed = await send(tenant, pb.StreamAppendEventsRequest())

    assert failed is not None
    assert (failed.reason, failed.fields) == ("FIELD_INVALID", ("events",))


async def test_bytes_that_are_no_message_are_refused(tenant: Tenant) -> None:
    stub = tenant.raw.channel.stream_stream("/annals.storage.v1.EventService/StreamAppendEvents")

    async def garbage() -> Any:
        stream = stub(metadata=tenant.raw.metadata(), timeout=10)
        await stream.write(b"\xff\xff\xff")
        return await stream.read()

    refused = await failure(garbage())

    assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("request",))


async def test_a_stream_without_credentials_is_refused(tenant: Tenant) -> None:
    stub = tenant.raw.channel.stream_stream("/annals.storage.v1.EventService/StreamAppendEvents")

    async def anonymous() -> Any:
        return await stub(timeout=10).read()

    assert (await failure(anonymous())).reason == "CREDENTIALS_INVALID"


@pytest.mark.parametrize("batches", [60])
async def test_the_typed_client_loads_in_bulk(tenant: Tenant, batches: int) -> None:
    room = await empty_conversation(tenant)
    load = tenant.client.events.stream_append(
        room, (user(f" {n}") for n in range(batches * 10)), batch_size=10
    )

    progress = [step async for step in load]

    assert len(progress) == batches
    await check_counters(tenant, room, expected=[f" {n}" for n in range(batches * 10)])
