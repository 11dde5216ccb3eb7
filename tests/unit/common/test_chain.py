"""The call chain, around a servicer of four methods: what goes wrong and what callers see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from tests.support.raw import Raw, failure
from tests.support.waiting import eventually

from annals_common.errors import DependencyUnavailableError, FieldInvalidError
from annals_common.interceptors.chain import Call
from annals_common.server import RunningServer, ServiceSpec, start_server
from annals_common.settings import ServerSettings

SERVICE = "annals.test.v1.ProbeService"
SECRET = "the secret of the exception"


class Probe:
    """Methods that fail, wait and answer."""

    def __init__(self) -> None:
        self.entered, self.leave = asyncio.Event(), asyncio.Event()
        self.healthy = True

    async def fail(self, _request: bytes, _context: Any) -> bytes:
        raise RuntimeError(SECRET)

    async def refuse(self, _request: bytes, _context: Any) -> bytes:
        raise FieldInvalidError("name", "must be short", "x" * 500)

    async def unavailable(self, _request: bytes, _context: Any) -> bytes:
        raise DependencyUnavailableError("postgresql")

    async def time_out(self, _request: bytes, _context: Any) -> bytes:
        raise TimeoutError

    async def wait(self, request: bytes, _context: Any) -> bytes:
        self.entered.set()
        await self.leave.wait()
        return request

    async def check(self) -> None:
        if not self.healthy:
            raise DependencyUnavailableError("postgresql")

    def register(self, server: grpc.aio.Server) -> None:
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(getattr(self, name.lower()), bytes, bytes)
            for name in ("Fail", "Refuse", "Unavailable", "Time_Out", "Wait")
        }
        generic = grpc.method_handlers_generic_handler(SERVICE, handlers)
        server.add_generic_rpc_handlers((generic,))


@asynccontextmanager
async def running(
    probe: Probe, middlewares: Any = (), **settings: Any
) -> AsyncIterator[tuple[RunningServer, Raw]]:
    spec = ServiceSpec((SERVICE,), probe.register, middlewares, probe.check)
    server = await start_server(spec, ServerSettings(**{"drain_seconds": 5, **settings}))
    async with Raw(f"127.0.0.1:{server.port}", "") as raw:
        yield server, raw
    probe.leave.set()
    await server.drain()


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, {"service": SERVICE, **labels}) or 0.0


async def call(raw: Raw, name: str, **fields: Any) -> bytes:
    return await raw.bytes_call(f"/{SERVICE}/{name}", b"x", **fields)


async def test_an_exception_becomes_an_incident_without_its_words() -> None:
    before = sample("annals_incidents_total", method="Fail")
    async with running(Probe()) as (_, raw):
        with capture_logs() as logs:
            failed = await failure(call(raw, "Fail"))

    [incident_id] = dict(failed.metadata).values()
    assert (failed.code, failed.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert incident_id in failed.message
    assert SECRET not in repr(failed)
    [entry] = [entry for entry in logs if entry["event"] == "incident"]
    assert entry["incident_id"] == incident_id
    assert isinstance(entry["exc_info"], RuntimeError)
    assert sample("annals_incidents_total", method="Fail") == before + 1


@pytest.mark.parametrize(
    ("method", "code", "reason", "retry_after_ms"),
    [
        ("Refuse", "INVALID_ARGUMENT", "FIELD_INVALID", None),
        ("Unavailable", "UNAVAILABLE", "DEPENDENCY_UNAVAILABLE", 500),
        ("Time_Out", "DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", None),
    ],
)
async def test_a_domain_error_becomes_its_status(
    method: str, code: str, reason: str, retry_after_ms: int | None
) -> None:
    async with running(Probe()) as (_, raw):
        failed = await failure(call(raw, method))

    assert (failed.code.name, failed.reason, failed.domain) == (code, reason, "annals")
    assert failed.retry_after_ms == retry_after_ms
    assert len(repr(failed)) < 1000


async def test_calls_are_counted_by_outcome_and_none_stays_in_flight() -> None:
    labels = {"method": "Refuse", "code": "INVALID_ARGUMENT", "reason": "FIELD_INVALID"}
    before = sample("annals_rpc_calls_total", **labels)
    async with running(Probe()) as (_, raw):
        for _ in range(3):
            await failure(call(raw, "Refuse"))

    assert sample("annals_rpc_calls_total", **labels) == before + 3
    assert sample("annals_rpc_in_flight") == 0


@pytest.mark.parametrize(
    ("sent", "kept"), [("abc-123", True), ("bad id", False), ("x" * 200, False)]
)
async def test_a_sane_request_id_is_logged_and_others_are_replaced(sent: str, kept: bool) -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def spy(one: Call) -> AsyncIterator[None]:
        seen.append(one.request_id)
        yield

    async with running(Probe(), (spy,)) as (_, raw):
        await failure(call(raw, "Refuse", metadata=[("x-request-id", sent)]))

    assert (seen == [sent]) is kept
    assert seen[0]


async def test_calls_beyond_the_limit_are_refused_and_the_others_go_on() -> None:
    probe = Probe()
    async with running(probe, max_concurrent_calls=1) as (_, raw):
        first = asyncio.create_task(call(raw, "Wait"))
        await probe.entered.wait()

        refused = await failure(call(raw, "Wait"))

        probe.leave.set()
        assert await first == b"x"
        assert await call(raw, "Wait") == b"x"
    assert (refused.code.name, refused.reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
    assert refused.retry_after_ms == 1000


async def test_a_middleware_that_refuses_keeps_the_method_from_running() -> None:
    probe = Probe()

    @asynccontextmanager
    async def closed(_call: Call) -> AsyncIterator[None]:
        raise FieldInvalidError("door", "is closed")
        yield

    async with running(probe, (closed,)) as (_, raw):
        refused = await failure(call(raw, "Wait"))

    assert refused.fields == ("door",)
    assert not probe.entered.is_set()


@pytest.mark.parametrize("path", [f"/{SERVICE}/Nothing", "/annals.other.v1.S/M", "/x"])
async def test_an_unknown_method_is_refused_with_a_reason(path: str) -> None:
    async with running(Probe()) as (_, raw):
        refused = await failure(raw.bytes_call(path, b"x"))

    assert (refused.code.name, refused.reason) == ("UNIMPLEMENTED", "METHOD_UNKNOWN")


async def test_draining_finishes_the_running_call_and_takes_no_new_one() -> None:
    probe = Probe()
    async with running(probe) as (server, raw):
        first = asyncio.create_task(call(raw, "Wait"))
        await probe.entered.wait()
        draining = asyncio.create_task(server.drain())

        # Until the server has come to refusing, a call may still get in, and waits like the first.
        await eventually(
            lambda: failure(call_anew(server.port)),
            lambda late: late.code is grpc.StatusCode.UNAVAILABLE,
        )
        assert not first.done()
        probe.leave.set()

        assert await first == b"x"
        await draining


async def call_anew(port: int) -> Any:
    """A call over a connection of its own, while the server drains."""
    async with Raw(f"127.0.0.1:{port}", "") as other:
        return await call(other, "Wait", timeout_s=1)


async def test_health_follows_the_dependencies() -> None:
    probe = Probe()
    async with running(probe) as (_, raw):
        stub: Any = health_pb2_grpc.HealthStub(raw.channel)

        async def status() -> int:
            request = health_pb2.HealthCheckRequest(service=SERVICE)
            return int((await stub.Check(request)).status)

        assert await status() == health_pb2.HealthCheckResponse.SERVING
        probe.healthy = False
        await eventually(status, lambda s: s == health_pb2.HealthCheckResponse.NOT_SERVING)
        probe.healthy = True
        await eventually(status, lambda s: s == health_pb2.HealthCheckResponse.SERVING)


@pytest.mark.parametrize("enabled", [True, False])
async def test_reflection_answers_only_when_enabled(enabled: bool) -> None:
    async with running(Probe(), reflection=enabled) as (_, raw):
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(raw.channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")

        async def names() -> set[str]:
            stream = stub.ServerReflectionInfo(timeout=5)
            await stream.write(request)
            answer = await stream.read()
            stream.cancel()
            return {one.name for one in answer.list_services_response.service}

        if enabled:
            assert SERVICE in await names()
        else:
            assert (await failure(names())).code is grpc.StatusCode.UNIMPLEMENTED
