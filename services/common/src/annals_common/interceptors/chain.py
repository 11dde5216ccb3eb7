"""Runs every call inside a chain of middlewares.

A middleware is an async context manager around one call; it serves unary and streaming
methods alike. Raw bytes are decoded inside the chain, so that a malformed message is an
error like any other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from annals_common.errors import FieldInvalidError

UNGUARDED_PREFIX = "/grpc."
"""Health and reflection answer everybody."""


@dataclass(slots=True)
class Call:
    """One call on its way through the chain."""

    method: str
    context: grpc.aio.ServicerContext[Any, Any]
    request_id: str = ""
    metadata: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def service_name(self) -> str:
        """The service, such as `annals.storage.v1.EventService`."""
        return self.method[1:].rpartition("/")[0]

    @property
    def method_name(self) -> str:
        """The method's own name, such as `AppendEvents`."""
        return self.method.rpartition("/")[2]


Middleware = Callable[[Call], AbstractAsyncContextManager[None]]
Decode = Callable[[bytes], Any]


class ChainInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Wraps every method in `outer`, and those that exist also in the middlewares, in order.

    Methods that do not exist need no credentials: what exists is no secret, and clients probe.
    """

    def __init__(self, outer: Middleware, middlewares: Sequence[Middleware]) -> None:
        self._outer = (outer,)
        self._all = (outer, *middlewares)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the method's handler, wrapped."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if not _exists(handler):
            return self._unary(handler, method, self._outer)
        if method.startswith(UNGUARDED_PREFIX):
            return handler
        if handler.response_streaming:
            return self._streaming(handler, method)
        return self._unary(handler, method, self._all)

    def _unary(self, handler: Any, method: str, middlewares: Sequence[Middleware]) -> Any:
        streaming = handler.request_streaming
        act = handler.stream_unary if streaming else handler.unary_unary

        async def run(raw: Any, context: Any) -> Any:
            async with _entered(method, context, middlewares):
                return await act(_decoded(handler, raw), context)

        make = (
            grpc.stream_unary_rpc_method_handler
            if streaming
            else grpc.unary_unary_rpc_method_handler
        )
        return make(run, response_serializer=handler.response_serializer)

    def _streaming(self, handler: Any, method: str) -> Any:
        streaming = handler.request_streaming
        act = handler.stream_stream if streaming else handler.unary_stream

        async def run(raw: Any, context: Any) -> AsyncIterator[Any]:
            async with _entered(method, context, self._all):
                async for response in act(_decoded(handler, raw), context):
                    yield response

        make = (
            grpc.stream_stream_rpc_method_handler
            if streaming
            else grpc.unary_stream_rpc_method_handler
        )
        return make(run, response_serializer=handler.response_serializer)


def _entered(
    method: str, context: Any, middlewares: Sequence[Middleware]
) -> AbstractAsyncContextManager[None]:
    return _Entered(middlewares, Call(method, context, metadata=_text_metadata(context)))


class _Entered(AbstractAsyncContextManager[None]):
    def __init__(self, middlewares: Sequence[Middleware], call: Call) -> None:
        self._middlewares, self._call, self._stack = middlewares, call, AsyncExitStack()

    async def __aenter__(self) -> None:
        try:
            for middleware in self._middlewares:
                await self._stack.enter_async_context(middleware(self._call))
        except BaseException as error:
            # The middlewares already entered must see the failure of a later one.
            if not await self._stack.__aexit__(type(error), error, error.__traceback__):
                raise

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stack.__aexit__(*error)


def _exists(handler: Any) -> bool:
    # Only the handler of unknown methods takes raw bytes.
    return handler.request_deserializer is not None


def _decoded(handler: Any, raw: Any) -> Any:
    if handler.request_streaming:
        return _decode_each(handler.request_deserializer, raw)
    return _decode(handler.request_deserializer, raw)


async def _decode_each(decode: Decode | None, raw: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    async for item in raw:
        yield _decode(decode, item)


def _decode(decode: Decode | None, raw: bytes) -> Any:
    try:
        return decode(raw) if decode else raw
    except DecodeError as error:
        raise FieldInvalidError("request", "is not a valid message of this method") from error


def _text_metadata(context: Any) -> dict[str, str]:
    pairs = context.invocation_metadata() or ()
    return {key: value for key, value in pairs if isinstance(value, str)}
