"""Which calls are repeated, when, and for how long. Both clients, real gRPC."""

from __future__ import annotations

import threading
import time

import grpc
import pytest

from annals.storage.v1 import (
    conversation_service_pb2,
    event_service_pb2,
    resources_pb2,
    tenant_service_pb2,
)
from annals_client import (
    AnnalsRpcError,
    DeadlineExceededError,
    OverloadedError,
    RetryPolicy,
    SeqMismatchError,
    UnavailableError,
    VersionMismatchError,
    user,
)
from annals_client.retry import MAX_ATTEMPTS
from annals_common.errors import (
    AnnalsError,
    DependencyUnavailableError,
)
from annals_common.errors import (
    SeqMismatchError as ServerSeqMismatchError,
)
from annals_common.errors import (
    VersionMismatchError as ServerVersionMismatchError,
)

FOUND = event_service_pb2.GetEventResponse(event=resources_pb2.Event(event_id="e1"))
STORED = event_service_pb2.AppendEventsResponse(conversation_id="c1", last_seq=1)


class FailureError(AnnalsError):
    """Any code with any advice."""

    def __init__(self, code, retry_after_ms=None, reason="TEST"):
        super().__init__("scripted")
        self.code, self.reason, self.retry_after_ms = code, reason, retry_after_ms


OVERLOADED = grpc.StatusCode.RESOURCE_EXHAUSTED
DOWN = FailureError(grpc.StatusCode.UNAVAILABLE)


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
    ],
)
async def test_a_read_is_repeated_until_it_succeeds(server, call, code):
    server.answer("GetEvent", FailureError(code), FailureError(code), FOUND)

    event = await call(lambda client: client.events.get("e1"))

    assert event.event_id == "e1"
    assert len(server.received["GetEvent"]) == 3


async def test_an_append_is_repeated_with_the_same_request_id(server, call):
    server.answer("AppendEvents", DOWN, DOWN, STORED)

    await call(lambda client: client.events.append("c1", user("hello")))

    ids = {one.request.request_id for one in server.received["AppendEvents"]}
    assert len(server.received["AppendEvents"]) == 3
    assert len(ids) == 1
    assert ids != {""}


async def test_a_create_is_repeated_with_the_same_request_id(server, call):
    server.answer("CreateConversation", DOWN, conversation_service_pb2.CreateConversationResponse())

    await call(lambda client: client.conversations.create(title="t"))

    ids = {one.request.request_id for one in server.received["CreateConversation"]}
    assert len(server.received["CreateConversation"]) == 2
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("method", "use"),
    [
        ("CreateTenant", lambda client: client.tenants.create("t")),
        ("CreateApiKey", lambda client: client.keys.create("k")),
        ("CreateAgent", lambda client: client.agents.create("a")),
        ("UpdateConversation", lambda client: client.conversations.update("c", title="t")),
    ],
)
async def test_a_write_without_a_key_is_sent_once(server, call, method, use):
    server.answer(method, DOWN)

    with pytest.raises(UnavailableError):
        await call(use)

    assert len(server.received[method]) == 1


async def test_an_agent_with_an_id_of_its_own_is_repeated(server, call):
    server.answer("CreateAgent", DOWN, tenant_service_pb2.CreateAgentResponse())

    await call(lambda client: client.agents.create("a", agent_id="0199c7a2"))

    assert len(server.received["CreateAgent"]) == 2


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (ServerSeqMismatchError(expected=1, actual=3), SeqMismatchError),
        (ServerVersionMismatchError(expected=1, actual=3), VersionMismatchError),
    ],
)
async def test_a_lost_race_is_not_repeated(server, call, failure, kind):
    server.answer("AppendEvents", failure)

    with pytest.raises(kind):
        await call(lambda client: client.events.append("c1", user("x"), expected_last_seq=1))

    assert len(server.received["AppendEvents"]) == 1


async def test_it_gives_up_after_the_last_attempt(server, call):
    server.answer("GetEvent", DOWN)

    with pytest.raises(UnavailableError):
        await call(lambda client: client.events.get("e1"))

    assert len(server.received["GetEvent"]) == MAX_ATTEMPTS


async def test_it_waits_as_long_as_the_server_asks(server, call):
    server.answer("GetEvent", FailureError(grpc.StatusCode.UNAVAILABLE, retry_after_ms=300), FOUND)

    await call(lambda client: client.events.get("e1"))

    first, second = server.received["GetEvent"]
    assert second.at_s - first.at_s >= 0.3


async def test_it_does_not_wait_beyond_the_deadline(server, call):
    server.answer("GetEvent", FailureError(OVERLOADED, retry_after_ms=60_000))
    started_s = time.monotonic()

    with pytest.raises(OverloadedError) as raised:
        await call(lambda client: client.events.get("e1", timeout=5))

    assert raised.value.retry_after_s == 60
    assert time.monotonic() - started_s < 2
    assert len(server.received["GetEvent"]) == 1


async def test_a_call_that_is_not_answered_ends_at_its_deadline(server, call):
    released = threading.Event()
    server.answer("GetEvent", lambda _request, _context: released.wait(20) and FOUND)
    started_s = time.monotonic()

    with pytest.raises(DeadlineExceededError):
        await call(lambda client: client.events.get("e1", timeout=0.3))

    released.set()
    assert 0.2 < time.monotonic() - started_s < 3


async def test_every_call_has_a_deadline(server, call):
    server.answer("GetEvent", FOUND)

    await call(lambda client: client.events.get("e1"))

    # gRPC rounds a deadline up on the wire.
    assert 9 < server.received["GetEvent"][0].time_remaining_s < 11


async def test_later_attempts_have_what_is_left_of_the_deadline(server, call):
    server.answer("GetEvent", FailureError(grpc.StatusCode.UNAVAILABLE, retry_after_ms=300), FOUND)

    await call(lambda client: client.events.get("e1", timeout=2))

    first, second = server.received["GetEvent"]
    assert second.time_remaining_s <= first.time_remaining_s - 0.25


async def test_a_server_that_is_not_there_is_unavailable(server, call):
    server.stop()

    with pytest.raises(UnavailableError) as raised:
        await call(lambda client: client.events.get("e1", timeout=3))

    assert (raised.value.reason, raised.value.service) == ("", "storage")


async def test_other_failures_are_not_repeated(server, call):
    server.answer("GetEvent", FailureError(grpc.StatusCode.INTERNAL))

    with pytest.raises(AnnalsRpcError):
        await call(lambda client: client.events.get("e1"))

    assert len(server.received["GetEvent"]) == 1


def test_backoff_grows_and_stays_under_its_cap():
    policy = RetryPolicy(initial_backoff_s=0.1, max_backoff_s=1.0)

    for attempt, most in ((1, 0.1), (2, 0.2), (3, 0.4), (4, 0.8), (5, 1.0), (50, 1.0)):
        assert most / 2 <= policy.backoff_s(attempt) <= most


async def test_a_dependency_that_is_down_says_so(server, call):
    server.answer("GetEvent", DependencyUnavailableError("postgresql"))

    with pytest.raises(UnavailableError) as raised:
        await call(lambda client: client.events.get("e1", timeout=0.4))

    assert raised.value.metadata == {"dependency": "postgresql"}
