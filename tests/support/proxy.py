"""A real gRPC server in front of storage that holds up the calls it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio


class Proxy(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Passes unary calls on byte for byte; calls of `silent` methods are never answered."""

    def __init__(self, address: str, silent: frozenset[str]) -> None:
        self.channel = grpc.aio.insecure_channel(address)
        self._silent = silent

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = handler_call_details.method

        async def act(request: bytes, context: Any) -> bytes:
            if method.rpartition("/")[2] in self._silent:
                await asyncio.Event().wait()
            return await self._forward(method, request, context)

        return grpc.unary_unary_rpc_method_handler(act)

    async def _forward(self, method: str, request: bytes, context: Any) -> bytes:
        pairs = [item for item in context.invocation_metadata() if item[0] != "user-agent"]
        try:
            return await self.channel.unary_unary(method)(request, metadata=pairs)
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details(), error.trailing_metadata())
            raise


@asynccontextmanager
async def proxy_to(address: str, *, silent: frozenset[str] = frozenset()) -> AsyncIterator[str]:
    """Yield the proxy's address."""
    proxy = Proxy(address, silent)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((proxy,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
        await proxy.channel.close()
