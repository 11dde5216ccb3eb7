"""Health of both services. Needs no key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grpc_health.v1 import health_pb2

from annals_client.calls import CONTEXT, Call, Credential, safe_call
from annals_client.values import enum_name


def storage(*, timeout: float | None = None) -> Call[str]:
    """Return "serving" or "not-serving" of storage."""
    return _named(safe_call(lambda stubs: stubs.storage_health.Check, _request(), timeout))


def context(*, timeout: float | None = None) -> Call[str]:
    """Return "serving" or "not-serving" of context."""
    call = safe_call(lambda stubs: stubs.context_health.Check, _request(), timeout)
    return _named(replace(call, service=CONTEXT))


def _named(call: Call[Any]) -> Call[str]:
    status = health_pb2.HealthCheckResponse.ServingStatus
    named = call.map(lambda answer: enum_name(status, "", answer.status))
    return named.by(Credential.NONE)


def _request() -> Any:
    return health_pb2.HealthCheckRequest()
