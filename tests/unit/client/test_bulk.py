"""Bulk appends: lazily, bounded, resumed, nothing twice and nothing lost."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator

import pytest

from annals_client import DeadlineExceededError, InvalidArgumentError, UnavailableError, user
from annals_common.errors import DependencyUnavailableError, FieldInvalidError


class DownError(DependencyUnavailableError):
    retry_after_ms = 10


def events(count: int) -> Iterator:
    return (user(f"event {number}", idempotency_key=f"k{number}") for number in range(count))


def failing_at(batch: int, error: Exception):
    return lambda number: error if number == batch else None


async def test_all_is_acknowledged_in_order(server, call):
    progress = await call(
        lambda client: client.events.stream_append("c1", events(25), batch_size=10)
    )

    assert [done.events for done in progress] == [10, 20, 25]
    assert [done.batches for done in progress] == [1, 2, 3]
    assert progress[-1].replayed_events == 0
    assert list(server.stored) == [f"k{number}" for number in range(25)]


async def test_nothing_to_append_is_no_failure(server, call):
    assert await call(lambda client: client.events.stream_append("c1", [])) == []


async def test_a_broken_stream_is_resumed_after_what_was_acknowledged(server, call):
    server.stream.failures = deque([failing_at(4, DownError("x")), failing_at(2, DownError("x"))])

    progress = await call(
        lambda client: client.events.stream_append("c1", events(100), batch_size=10)
    )

    assert server.streams == 3
    assert progress[-1].events == 100
    assert list(server.stored) == [f"k{number}" for number in range(100)]


async def test_a_batch_stored_without_acknowledgement_is_not_stored_twice(server, call):
    server.stream.failures = deque([failing_at(3, DownError("x"))])
    server.stream.lose_acknowledgement = True

    progress = await call(
        lambda client: client.events.stream_append("c1", events(50), batch_size=10)
    )

    assert len(server.stored) == 50
    assert progress[-1].events == 50
    assert progress[-1].replayed_events >= 10


async def test_events_without_a_key_keep_the_one_they_got(server, call):
    server.stream.failures = deque([failing_at(2, DownError("x"))])
    server.stream.lose_acknowledgement = True
    given = [user("same words") for _ in range(20)]

    await call(lambda client: client.events.stream_append("c1", given, batch_size=5))

    assert len(server.stored) == 20
    assert not any(event.idempotency_key for event in given)


async def test_a_refused_batch_ends_the_load_and_is_not_repeated(server, call):
    server.stream.refuse = {"k12": FieldInvalidError("events[2]", "is bad")}

    with pytest.raises(InvalidArgumentError):
        await call(lambda client: client.events.stream_append("c1", events(50), batch_size=10))

    assert server.streams <= 2
    assert len(server.stored) == 10


async def test_it_gives_up_when_nothing_is_acknowledged_for_its_timeout(server, call):
    server.stream.failures = deque(failing_at(1, DownError("x")) for _ in range(1_000))

    with pytest.raises(UnavailableError):
        await call(lambda client: client.events.stream_append("c1", events(5), timeout=0.3))

    assert server.streams > 1


async def test_a_stream_that_stalls_ends_at_its_deadline(server, call):
    server.stream.hold = threading.Event()

    with pytest.raises(DeadlineExceededError):
        await call(lambda client: client.events.stream_append("c1", events(5), timeout=0.3))

    server.stream.hold.set()


async def test_a_deadline_after_progress_only_begins_another_stream(server, call):
    held = threading.Event()

    def stall_after_two(number):
        if number == 3:
            held.wait(1.0)
        return

    server.stream.failures = deque([stall_after_two])

    progress = await call(
        lambda client: client.events.stream_append("c1", events(40), batch_size=10, timeout=0.5)
    )

    assert server.streams == 2
    assert progress[-1].events == 40
    assert len(server.stored) == 40


def test_the_source_is_read_lazily_and_in_bounds(server, client):
    taken = []

    def source():
        for event in events(1_000):
            taken.append(event)
            yield event

    load = client.events.stream_append("c1", source(), batch_size=10, max_in_flight=2)
    assert not taken
    first = next(load)

    assert first.events == 10
    assert len(taken) <= 10 * 3 + 1
    load.close()


async def test_a_failure_of_the_source_comes_through(server, call):
    def source():
        yield from events(15)
        raise RuntimeError("the file ended in the middle")

    with pytest.raises(RuntimeError, match="ended in the middle"):
        await call(lambda client: client.events.stream_append("c1", source(), batch_size=10))


async def test_the_async_client_takes_an_async_source(server, aio_client):
    async def source():
        for event in events(25):
            await asyncio.sleep(0)
            yield event

    load = aio_client.events.stream_append("c1", source(), batch_size=10)

    assert [done.events async for done in load] == [10, 20, 25]


async def test_large_events_are_cut_into_smaller_batches(server, call):
    large = [user("x" * 1_000_000, idempotency_key=f"k{number}") for number in range(20)]

    await call(lambda client: client.events.stream_append("c1", large, batch_size=1_000))

    sizes = [one.request.ByteSize() for one in server.received["StreamAppendEvents"]]
    assert max(sizes) <= 8 * 1024 * 1024 + 1_000
    assert len(server.stored) == 20


@pytest.mark.parametrize(("size", "window"), [(0, 1), (1_001, 1), (10, 0)])
def test_sizes_out_of_range_are_refused(client, size, window):
    with pytest.raises(ValueError, match="is not"):
        client.events.stream_append("c1", [], batch_size=size, max_in_flight=window)
