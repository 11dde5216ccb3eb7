"""What a service says of its health."""

from __future__ import annotations

from typing import Any

from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.support.storage import Tenant

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def status(tenant: Tenant, name: str = "") -> int:
    """The status of a service; without a name, of all."""
    stub: Any = health_pb2_grpc.HealthStub(tenant.raw.channel)
    return int((await stub.Check(health_pb2.HealthCheckRequest(service=name))).status)
