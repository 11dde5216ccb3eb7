"""Servers that fail and succeed as a test says: real gRPC over sockets, no logic."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_status import rpc_status

from annals.context.v1 import context_service_pb2, format_service_pb2
from annals.storage.v1 import (
    context_cache_service_pb2,
    conversation_service_pb2,
    erasure_service_pb2,
    event_service_pb2,
    index_service_pb2,
    job_service_pb2,
    lifecycle_service_pb2,
    memory_service_pb2,
    provider_service_pb2,
    relationship_service_pb2,
    search_service_pb2,
    tenant_service_pb2,
    topic_service_pb2,
    usage_service_pb2,
)
from annals_common.errors import AnnalsError
from annals_common.status import to_status

_MODULES = (
    context_cache_service_pb2,
    conversation_service_pb2,
    erasure_service_pb2,
    event_service_pb2,
    index_service_pb2,
    job_service_pb2,
    lifecycle_service_pb2,
    memory_service_pb2,
    provider_service_pb2,
    relationship_service_pb2,
    search_service_pb2,
    tenant_service_pb2,
    topic_service_pb2,
    usage_service_pb2,
    context_service_pb2,
    format_service_pb2,
)
_SERVER_STREAMS = frozenset({"WatchEvents", "ExportConversation"})
Answer = Any
"""A message, an AnnalsError to fail with, or a function of request and context."""


@dataclass
class Received:
    """One request as it arrived."""

    request: Any
    metadata: dict[str, str]
    at_s: float
    time_remaining_s: float


@dataclass
class StreamScript:
    """How the streams of bulk appends go: one entry per stream, then all goes well."""

    failures: deque[Callable[[int], AnnalsError | None]] = field(default_factory=deque)
    lose_acknowledgement: bool = False
    """True: the batch that fails is stored, only its acknowledgement is lost."""
    refuse: dict[str, AnnalsError] = field(default_factory=dict)
    """Idempotency keys whose batch is refused, each time it comes."""
    hold: threading.Event | None = None


class ScriptedServer(grpc.GenericRpcHandler):
    """Answers each method with what was scripted for it; the last answer repeats."""

    def __init__(self) -> None:
        self.script: dict[str, deque[Answer]] = defaultdict(deque)
        self.received: dict[str, list[Received]] = defaultdict(list)
        self.stream = StreamScript()
        self.stored: dict[str, int] = {}
        self.streams = 0
        self._server = grpc.server(
            ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", 64 * 1024 * 1024)]
        )
        self._server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def answer(self, method: str, *answers: Answer) -> None:
        self.script[method].extend(answers)

    def stop(self) -> None:
        self._server.stop(0).wait()

    def service(self, handler_call_details: Any) -> Any:
        name = handler_call_details.method.rpartition("/")[2]
        if name == "StreamAppendEvents":
            return grpc.stream_stream_rpc_method_handler(
                self._stream,
                event_service_pb2.StreamAppendEventsRequest.FromString,
                event_service_pb2.StreamAppendEventsResponse.SerializeToString,
            )
        if name in _SERVER_STREAMS:
            return grpc.unary_stream_rpc_method_handler(
                lambda request, context: self._answers(name, request, context),
                _request_type(name).FromString,
                lambda message: message.SerializeToString(),
            )
        if name == "ImportConversations":
            return grpc.stream_unary_rpc_method_handler(
                lambda requests, context: self._unary(name, list(requests), context),
                _request_type(name).FromString,
                lambda message: message.SerializeToString(),
            )
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._unary(name, request, context),
            _request_type(name).FromString,
            lambda message: message.SerializeToString(),
        )

    def _unary(self, name: str, request: Any, context: Any) -> Any:
        self.received[name].append(_received(request, context))
        answers = self.script[name]
        if not answers:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{name} is not scripted")
        answer = answers.popleft() if len(answers) > 1 else answers[0]
        if isinstance(answer, AnnalsError):
            fail(context, answer)
        return answer(request, context) if callable(answer) else answer

    def _answers(self, name: str, request: Any, context: Any) -> Iterator[Any]:
        """One script entry per stream: its answers, of which an error ends it."""
        self.received[name].append(_received(request, context))
        for answer in self.script[name].popleft():
            if isinstance(answer, AnnalsError):
                fail(context, answer)
            yield answer

    def _stream(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        self.streams += 1
        script = self.stream
        failure = script.failures.popleft() if script.failures else lambda _batch: None
        batches = events = replayed = 0
        for number, request in enumerate(requests, start=1):
            if script.hold:
                script.hold.wait(10)
            self.received["StreamAppendEvents"].append(_received(request, context))
            keys = [event.idempotency_key for event in request.append.events]
            for key in script.refuse.keys() & set(keys):
                fail(context, script.refuse[key])
            error = failure(number)
            if error and not script.lose_acknowledgement:
                fail(context, error)
            fresh = self._store(request.append)
            if error:
                fail(context, error)
            count = len(request.append.events)
            batches, events, replayed = batches + 1, events + count, replayed + count - fresh
            yield event_service_pb2.StreamAppendEventsResponse(
                acknowledged_batches=batches,
                acknowledged_events=events,
                replayed_events=replayed,
                conversation_id=request.append.conversation_id,
                last_seq=len(self.stored),
            )

    def _store(self, append: Any) -> int:
        before = len(self.stored)
        for event in append.events:
            assert event.idempotency_key
            self.stored.setdefault(event.idempotency_key, len(self.stored) + 1)
        return len(self.stored) - before


def fail(context: Any, error: AnnalsError) -> None:
    """End the call as the real interceptor would."""
    context.abort_with_status(rpc_status.to_status(to_status(error)))


def _received(request: Any, context: Any) -> Received:
    metadata = {item.key: item.value for item in context.invocation_metadata()}
    return Received(request, metadata, time.monotonic(), context.time_remaining())


def _request_type(name: str) -> Any:
    if name == "Check":
        return health_pb2.HealthCheckRequest
    wanted = f"{name}Request"
    return next(getattr(module, wanted) for module in _MODULES if hasattr(module, wanted))
