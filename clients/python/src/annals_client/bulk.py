"""The state of one bulk append, without its input and output.

Both clients drive it the same way: fill the window with batches, wait for one
acknowledgement, repeat; after a broken stream send again what was not acknowledged. Every
event carries an idempotency key, so what is sent twice is stored once.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass

import grpc

from annals.storage.v1 import event_service_pb2 as pb
from annals_client.errors import AnnalsRpcError
from annals_client.retry import RetryPolicy, is_transient

BATCH_EVENTS = 500
BATCH_BYTES = 8 * 1024 * 1024
MAX_IN_FLIGHT = 4
BULK_TIMEOUT_S = 60.0
MAX_BATCH_EVENTS = 1_000


@dataclass(frozen=True, slots=True)
class AppendProgress:
    """What is durable so far, over all streams of one bulk append."""

    batches: int
    events: int
    replayed_events: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """`timeout_s`: the longest time without an acknowledgement, reconnecting included."""

    batch_size: int = BATCH_EVENTS
    max_in_flight: int = MAX_IN_FLIGHT
    timeout_s: float = BULK_TIMEOUT_S

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= MAX_BATCH_EVENTS:
            raise ValueError(f"batch_size: {self.batch_size} is not in 1–{MAX_BATCH_EVENTS}")
        if self.max_in_flight < 1:
            raise ValueError(f"max_in_flight: {self.max_in_flight} is not at least 1")


class BulkAppend:
    """What was sent, what is acknowledged, and whether to go on after a failure."""

    def __init__(self, options: BulkOptions, policy: RetryPolicy) -> None:
        self._options, self._policy = options, policy
        self._in_flight: deque[pb.StreamAppendEventsRequest] = deque()
        self._stream_batches = 0
        self._stream_replayed = 0
        self._failures = 0
        self._stalled_since_s: float | None = None
        self.progress = AppendProgress(0, 0, 0, 0)

    @property
    def has_room(self) -> bool:
        """True while another batch may be sent before the next acknowledgement."""
        return len(self._in_flight) < self._options.max_in_flight

    @property
    def is_waiting(self) -> bool:
        """True while something sent is not acknowledged."""
        return bool(self._in_flight)

    def begin_stream(self) -> list[pb.StreamAppendEventsRequest]:
        """Note that a new stream begins; return what to send again on it, one at a time."""
        self._stream_batches = self._stream_replayed = 0
        return list(self._in_flight)

    def sent(self, batch: pb.StreamAppendEventsRequest) -> None:
        """Note a batch before it is written, so that it survives a broken stream."""
        self._in_flight.append(batch)

    def acknowledged(self, answer: pb.StreamAppendEventsResponse) -> AppendProgress:
        """Note an acknowledgement; return the progress so far."""
        before, events = self.progress, 0
        batches = answer.acknowledged_batches - self._stream_batches
        for _ in range(batches):
            events += len(self._in_flight.popleft().append.events)
        self.progress = AppendProgress(
            before.batches + batches,
            before.events + events,
            before.replayed_events + answer.replayed_events - self._stream_replayed,
            answer.last_seq,
        )
        self._stream_batches = answer.acknowledged_batches
        self._stream_replayed = answer.replayed_events
        self._failures, self._stalled_since_s = 0, None
        return self.progress

    def resume_delay_s(self, error: AnnalsRpcError) -> float:
        """Seconds to wait before the next stream. Raises `error` when there is none."""
        if error.code is grpc.StatusCode.DEADLINE_EXCEEDED and self._moved():
            return 0.0
        if not is_transient(error):
            raise error
        self._failures += 1
        delay_s = max(self._policy.backoff_s(self._failures), error.retry_after_s or 0.0)
        if self._stalled_s() + delay_s >= self._options.timeout_s:
            raise error
        return delay_s

    def _moved(self) -> bool:
        return self._stream_batches > 0 or not self._in_flight

    def _stalled_s(self) -> float:
        now_s = time.monotonic()
        if self._stalled_since_s is None:
            self._stalled_since_s = now_s
        return now_s - self._stalled_since_s


class Batcher:
    """Cuts a sequence of events into batches, by number and by bytes."""

    def __init__(self, conversation_id: str, batch_size: int) -> None:
        self._conversation_id, self._batch_size = conversation_id, batch_size
        self._batch, self._bytes = self._empty(), 0

    def add(self, event: pb.NewEvent) -> pb.StreamAppendEventsRequest | None:
        """Take an event; return the batch before it when that is full."""
        size_bytes = event.ByteSize()
        events = self._batch.append.events
        full = len(events) >= self._batch_size or self._bytes + size_bytes > BATCH_BYTES
        finished = self.rest() if full else None
        self._put(event, size_bytes)
        return finished

    def rest(self) -> pb.StreamAppendEventsRequest | None:
        """Return what is left, or None."""
        batch = self._batch
        self._batch, self._bytes = self._empty(), 0
        return batch if batch.append.events else None

    def _put(self, event: pb.NewEvent, size_bytes: int) -> None:
        added = self._batch.append.events.add()
        added.CopyFrom(event)
        if not added.idempotency_key:
            added.idempotency_key = str(uuid.uuid4())
        self._bytes += size_bytes

    def _empty(self) -> pb.StreamAppendEventsRequest:
        request = pb.AppendEventsRequest(conversation_id=self._conversation_id)
        return pb.StreamAppendEventsRequest(append=request)


def batches_of(
    events: Iterable[pb.NewEvent], batcher: Batcher
) -> Iterator[pb.StreamAppendEventsRequest]:
    """Cut `events` lazily: no more is read than the batch asked for needs."""
    for event in events:
        if (full := batcher.add(event)) is not None:
            yield full
    if (rest := batcher.rest()) is not None:
        yield rest


async def batches_of_async(
    events: Iterable[pb.NewEvent] | AsyncIterable[pb.NewEvent], batcher: Batcher
) -> AsyncIterator[pb.StreamAppendEventsRequest]:
    """Cut `events` lazily, as `batches_of` does."""
    if not isinstance(events, AsyncIterable):
        for batch in batches_of(events, batcher):
            yield batch
        return
    async for event in events:
        if (full := batcher.add(event)) is not None:
            yield full
    if (rest := batcher.rest()) is not None:
        yield rest
