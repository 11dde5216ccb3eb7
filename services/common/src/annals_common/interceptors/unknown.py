"""Answers methods that do not exist, with a reason."""

from __future__ import annotations

from typing import Any

import grpc

from annals_common.errors import AnnalsError


class MethodUnknownError(AnnalsError):
    """The method does not exist in this version."""

    code = grpc.StatusCode.UNIMPLEMENTED
    reason = "METHOD_UNKNOWN"


class UnknownMethodHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """The last handler asked: takes every method nobody else serves. Runs inside the chain,
    which turns its error into a status.
    """

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return a handler that refuses."""
        error = MethodUnknownError(f"no method {handler_call_details.method} in this version")

        async def refuse(_request: bytes, _context: Any) -> bytes:
            raise error

        return grpc.unary_unary_rpc_method_handler(refuse)
