"""How an append and the tables behave as a conversation grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle
from uuid import uuid4

import grpc
from tests.bench.harness import Report, percentile, progress
from tests.bench.rows import conversations, settle, tables_bytes
from tests.bench.stack import Account, Stack
from tests.bench.texts import messages

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import event_service_pb2_grpc as stubs
from annals_client import user

SMALL_EVENTS, LARGE_EVENTS = 100, 100_000
SMALL_CONVERSATIONS = 100
"""So many that none of them grows much by being measured."""
APPENDS = 200
ROUNDS = 5
WARM_UP_APPENDS = 50
STEP_EVENTS = 10_000
BATCH_EVENTS = 500

Append = Callable[[str], None]


def measure_growth(stack: Stack, report: Report) -> None:
    """Add what an append costs at 100 and at 100,000 events, and the bytes of an event."""
    _add_sizes(stack, report)
    account = stack.create_tenant("bench growth")
    *small, large = conversations(
        stack, account, [*[SMALL_EVENTS] * SMALL_CONVERSATIONS, LARGE_EVENTS]
    )
    settle(stack)
    with grpc.insecure_channel(stack.storage) as channel:
        append = _appender(channel, account)
        at_small, at_large = _in_turns(append, small, large)
    ratios = [
        percentile(theirs, 50) / percentile(ours, 50)
        for ours, theirs in zip(at_small, at_large, strict=True)
    ]
    report.add_runs("append_p50_100k_vs_100", ratios, "ratio", "<= 1.2")
    for size, rounds in ((SMALL_EVENTS, at_small), (LARGE_EVENTS, at_large)):
        p50 = [percentile(each, 50) for each in rounds]
        report.add_runs(f"append_p50_at_{size}_events", p50, "ms")


def _appender(channel: grpc.Channel, account: Account) -> Append:
    stub = stubs.EventServiceStub(channel)
    metadata = (("authorization", f"Bearer {account.api_key}"),)
    texts = cycle(messages(1_000, seed=7))

    def append(conversation_id: str) -> None:
        request = pb.AppendEventsRequest(
            conversation_id=conversation_id, events=[user(next(texts))], request_id=str(uuid4())
        )
        stub.AppendEvents(request, metadata=metadata, timeout=30)

    return append


def _in_turns(
    append: Append, small: list[str], large: str
) -> tuple[list[list[float]], list[list[float]]]:
    """Append to one and to the other, by one caller; return milliseconds, a list per round."""
    chosen = cycle(small)
    for _ in range(WARM_UP_APPENDS):
        append(next(chosen))
        append(large)
    at_small: list[list[float]] = []
    at_large: list[list[float]] = []
    with progress() as shown:
        for _ in shown.track(range(ROUNDS), description="growth"):
            at_small.append([])
            at_large.append([])
            for _ in range(APPENDS):
                at_small[-1].append(_timed(append, next(chosen)))
                at_large[-1].append(_timed(append, large))
    return at_small, at_large


def _timed(append: Append, conversation_id: str) -> float:
    begun = time.perf_counter()
    append(conversation_id)
    return (time.perf_counter() - begun) * 1000


def _add_sizes(stack: Stack, report: Report) -> None:
    """Bytes of two steps of the same length: the second must not cost more than the first."""
    account = stack.create_tenant("bench sizes")
    with stack.client(account.api_key) as client:
        conversation_id = client.conversations.create().conversation_id
        sizes = [tables_bytes(stack)]
        for step in range(2):
            events = (user(text) for text in messages(STEP_EVENTS, seed=step))
            for _ in client.events.stream_append(conversation_id, events, batch_size=BATCH_EVENTS):
                pass
            sizes.append(tables_bytes(stack))
    first, second = sizes[1] - sizes[0], sizes[2] - sizes[1]
    report.add("postgresql_bytes_per_event", (first + second) / (2 * STEP_EVENTS), "bytes")
    report.add("postgresql_bytes_second_vs_first_10k", second / first, "ratio", "<= 1.1")
