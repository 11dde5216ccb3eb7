"""Calls by method name with any message or any bytes, and failures as values to compare."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2

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
    summary_service_pb2,
    tenant_service_pb2,
    topic_service_pb2,
    usage_service_pb2,
)
from annals_common.errors import MAX_ECHOED_VALUE_CHARS

MODULES = (
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
    summary_service_pb2,
    tenant_service_pb2,
    topic_service_pb2,
    usage_service_pb2,
)
STREAMING = frozenset(
    {"StreamAppendEvents", "WatchEvents", "ExportConversation", "ImportConversations"}
)
TIMEOUT_S = 30.0
MAX_MESSAGE_BYTES = 100 * 1024 * 1024
WRITE_TOO_LATE = "Internal error from Core"
"""What grpc.aio makes of a message that it sent when the call had ended already."""


def methods() -> dict[str, MethodDescriptor]:
    """Every method of every storage service, by its own name."""
    found = [
        method
        for module in MODULES
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    return {method.name: method for method in found}


def unary_methods() -> dict[str, MethodDescriptor]:
    """Every method that is not a stream."""
    return {name: method for name, method in methods().items() if name not in STREAMING}


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A status and its details. `fields`: the paths of the BadRequest, in order."""

    code: grpc.StatusCode
    message: str
    domain: str = ""
    reason: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    fields: tuple[str, ...] = ()
    retry_after_ms: int | None = None

    def without(self, *values: str) -> Failure:
        """The same failure with every echo of these values blanked."""

        def blank(text: str) -> str:
            for value in values:
                text = text.replace(value, "<id>")
            return text

        pairs = tuple((key, blank(value)) for key, value in self.metadata)
        return Failure(self.code, blank(self.message), self.domain, self.reason, pairs, self.fields)


class RpcFailedError(Exception):
    """Raised by `Raw` with the failure as a value."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.code.name} {failure.reason}: {failure.message}")
        self.failure = failure


class Raw:
    """One channel; `call` sends whatever it is given."""

    def __init__(self, address: str, api_key: str) -> None:
        options = [
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self.channel = grpc.aio.insecure_channel(address, options=options)
        self.api_key = api_key

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.channel.close()

    def metadata(self, api_key: str | None = None) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.api_key if api_key is None else api_key}"),)

    async def call(
        self,
        name: str,
        request: Message | bytes | None = None,
        *,
        timeout_s: float | None = TIMEOUT_S,
        metadata: Sequence[tuple[str, str | bytes]] | None = None,
    ) -> Any:
        """Call a unary method. Raises RpcFailedError."""
        method = methods()[name]
        raw = request if isinstance(request, bytes) else _serialized(request)
        sent = self.metadata() if metadata is None else metadata
        answer = await self.bytes_call(path_of(method), raw, timeout_s=timeout_s, metadata=sent)
        return GetMessageClass(method.output_type).FromString(answer)

    async def bytes_call(
        self,
        path: str,
        raw: bytes,
        *,
        timeout_s: float | None = TIMEOUT_S,
        metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> bytes:
        """Call any path with any bytes. Raises RpcFailedError."""
        stub = self.channel.unary_unary(path)
        try:
            return bytes(await stub(raw, timeout=timeout_s, metadata=tuple(metadata)))
        except grpc.aio.AioRpcError as error:
            raise RpcFailedError(failure_of(error)) from None

    def answers(self, name: str, request: Message, *, timeout_s: float | None = TIMEOUT_S) -> Any:
        """Open a call of a method that answers with a stream."""
        method = methods()[name]
        stub = self.channel.unary_stream(
            path_of(method),
            request_serializer=type(request).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return stub(request, timeout=timeout_s, metadata=self.metadata())

    def upload(
        self,
        name: str,
        requests: Iterable[Message] | AsyncIterable[Message],
        *,
        timeout_s: float | None = TIMEOUT_S,
    ) -> Any:
        """Open a call of a method that takes a stream and answers once."""
        method = methods()[name]
        stub = self.channel.stream_unary(
            path_of(method),
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return stub(requests, timeout=timeout_s, metadata=self.metadata())

    async def append_one(self, request: Message) -> Any:
        """Send one message on a StreamAppendEvents call; return the first answer."""
        while True:
            stream = self.stream_append()
            try:
                await stream.write(request)
                await stream.done_writing()
                return await stream.read()
            except grpc.aio.AioRpcError as error:
                # The call was refused before the message was sent, and the reason is lost.
                if error.details() != WRITE_TOO_LATE:
                    raise

    def stream_append(self, *, timeout_s: float = TIMEOUT_S) -> Any:
        """Open a StreamAppendEvents call."""
        method = methods()["StreamAppendEvents"]
        stub = self.channel.stream_stream(
            path_of(method),
            request_serializer=event_service_pb2.StreamAppendEventsRequest.SerializeToString,
            response_deserializer=event_service_pb2.StreamAppendEventsResponse.FromString,
        )
        return stub(timeout=timeout_s, metadata=self.metadata())


async def failure(call: Awaitable[Any]) -> Failure:
    """The failure of a call that must fail."""
    try:
        answer = await call
    except RpcFailedError as error:
        return error.failure
    except grpc.aio.AioRpcError as error:
        return failure_of(error)
    raise AssertionError(f"the call succeeded: {str(answer)[:200]}")


async def outcome(call: Awaitable[Any]) -> Any:
    """The answer of a call, or its failure."""
    try:
        return await call
    except RpcFailedError as error:
        return error.failure


def failure_of(error: grpc.aio.AioRpcError) -> Failure:
    """Read status and details."""
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            status.ParseFromString(value)
    info, bad, retry = (
        error_details_pb2.ErrorInfo(),
        error_details_pb2.BadRequest(),
        error_details_pb2.RetryInfo(),
    )
    has_retry = [item.Unpack(retry) for item in status.details if item.Is(retry.DESCRIPTOR)]
    for detail in status.details:
        for kind in (info, bad):
            if detail.Is(kind.DESCRIPTOR):
                detail.Unpack(kind)
    return Failure(
        code=error.code(),
        message=error.details() or "",
        domain=info.domain,
        reason=info.reason,
        metadata=tuple(sorted(info.metadata.items())),
        fields=tuple(violation.field for violation in bad.field_violations),
        retry_after_ms=retry.retry_delay.ToMilliseconds() if has_retry else None,
    )


def echoed(value: str) -> str:
    """How a value of a request looks in an error."""
    cut = value if len(value) <= MAX_ECHOED_VALUE_CHARS else f"{value[:MAX_ECHOED_VALUE_CHARS]}…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cut)


def _serialized(request: Message | None) -> bytes:
    return b"" if request is None else request.SerializeToString()
