"""Asks servers whether they serve."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from annals_common.channels import open_aio_channel

CALL_TIMEOUT_SECONDS = 2.0
PAUSE_SECONDS = 0.5


async def probe(
    addresses: Sequence[str],
    credentials: grpc.ChannelCredentials | None,
    *,
    service: str = "",
    wait_seconds: float = 0.0,
) -> dict[str, str]:
    """Return address → answer of every server, asked again until it is SERVING or time is up.

    An answer is a serving status by its name, or the code of a call that failed.
    """
    until = time.monotonic() + wait_seconds
    asked = [_serving(address, credentials, service, until) for address in addresses]
    return dict(zip(addresses, await asyncio.gather(*asked), strict=True))


async def _serving(
    address: str, credentials: grpc.ChannelCredentials | None, service: str, until: float
) -> str:
    async with open_aio_channel(address, credentials) as channel:
        while True:
            answer = await _asked(channel, service)
            if answer == "SERVING" or time.monotonic() >= until:
                return answer
            await asyncio.sleep(PAUSE_SECONDS)


async def _asked(channel: grpc.aio.Channel, service: str) -> str:
    stub = health_pb2_grpc.HealthStub(channel)
    try:
        answer = await stub.Check(
            health_pb2.HealthCheckRequest(service=service), timeout=CALL_TIMEOUT_SECONDS
        )
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
