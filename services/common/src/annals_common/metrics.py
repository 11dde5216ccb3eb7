"""Metrics of every server, in Prometheus' default registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, start_http_server
from prometheus_client.registry import Collector

LATENCY_BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip

RPC_CALLS = Counter(
    "annals_rpc_calls_total", "Finished calls.", ["service", "method", "code", "reason"]
)
RPC_SECONDS = Histogram(
    "annals_rpc_duration_seconds",
    "Time from the request's arrival to the status.",
    ["service", "method"],
    buckets=LATENCY_BUCKETS,
)
RPC_IN_FLIGHT = Gauge("annals_rpc_in_flight", "Calls being served.", ["service"])
INCIDENTS = Counter("annals_incidents_total", "Unhandled exceptions.", ["service", "method"])


@contextmanager
def serving_metrics(address: str) -> Iterator[int]:
    """Serve /metrics on host:port (port 0: any) from a thread; yield the port. Empty: 0."""
    if not address:
        yield 0
        return
    host, _, port = address.rpartition(":")
    server, thread = start_http_server(int(port), addr=host or "127.0.0.1")
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def registered(collector: Collector) -> Iterator[None]:
    """Have a collector scraped for as long as the context lasts."""
    REGISTRY.register(collector)
    try:
        yield
    finally:
        REGISTRY.unregister(collector)
