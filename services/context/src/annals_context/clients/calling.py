"""One call of storage, with the caller's own credentials and what is left of its time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc.aio

from annals_common.errors import DeadlineExceededError
from annals_common.interceptors.observe import REQUEST_ID_METADATA_KEY
from annals_common.upstream import from_rpc_error
from annals_context.ports import Caller

SERVICE = "storage"

T = TypeVar("T")


async def call(method: Callable[..., Awaitable[T]], request: Any, caller: Caller) -> T:
    """Raises AnnalsError as storage did."""
    if caller.timeout_s is not None and caller.timeout_s <= 0:
        raise DeadlineExceededError
    metadata = (
        ("authorization", caller.authorization),
        (REQUEST_ID_METADATA_KEY, caller.request_id),
        *caller.end_user,
    )
    try:
        return await method(request, metadata=metadata, timeout=caller.timeout_s)
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error, SERVICE) from error
