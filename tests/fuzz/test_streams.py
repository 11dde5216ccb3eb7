"""Senseless messages to every streaming method: never INTERNAL, always a reason.

What a stream answers is read for a moment only: some of them never end by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, seed
from hypothesis import strategies as st
from tests.fuzz.conftest import Fuzzed
from tests.fuzz.generated import PROFILE, SEED, check, messages
from tests.support.raw import (
    STREAMING,
    WRITE_TOO_LATE,
    Raw,
    RpcFailedError,
    failure_of,
    methods,
    path_of,
)

ANSWERS = 3
TIMEOUT_S = 0.5
MAX_MESSAGES = 3


@pytest.mark.parametrize("name", sorted(STREAMING))
def test_no_stream_breaks_a_method(fuzzed: Fuzzed, name: str) -> None:
    loop, tenant = fuzzed
    method = methods()[name]
    most = MAX_MESSAGES if method.client_streaming else 1

    @seed(SEED)
    @PROFILE
    @given(st.lists(messages(method.input_type), min_size=1, max_size=most))
    def run(requests: list[Any]) -> None:
        loop.run_until_complete(check(name, requests, _exchange(tenant.raw, name, requests)))

    run()


def test_every_streaming_method_is_known() -> None:
    streaming = {
        name
        for name, method in methods().items()
        if method.client_streaming or method.server_streaming
    }

    assert streaming == STREAMING


async def _exchange(raw: Raw, name: str, requests: Sequence[Any]) -> None:
    """Send all, read a few. A stream that is still open then has nothing to be blamed for."""
    try:
        await _send_and_read(raw, name, requests)
    except grpc.aio.AioRpcError as error:
        if error.details() == WRITE_TOO_LATE and len(requests) > 1:
            await _exchange(raw, name, requests[:-1])
        elif error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
            raise RpcFailedError(failure_of(error)) from None


async def _send_and_read(raw: Raw, name: str, requests: Sequence[Any]) -> None:
    call = _open(raw, name, requests)
    if not methods()[name].server_streaming:
        await call
        return
    for _ in range(ANSWERS):
        if await call.read() is grpc.aio.EOF:
            break
    call.cancel()


def _open(raw: Raw, name: str, requests: Sequence[Any]) -> Any:
    method = methods()[name]
    kinds = {
        (False, True): raw.channel.unary_stream,
        (True, False): raw.channel.stream_unary,
        (True, True): raw.channel.stream_stream,
    }
    stub = kinds[method.client_streaming, method.server_streaming](
        path_of(method),
        request_serializer=GetMessageClass(method.input_type).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    sent = iter(requests) if method.client_streaming else requests[0]
    return stub(sent, timeout=TIMEOUT_S, metadata=raw.metadata())
