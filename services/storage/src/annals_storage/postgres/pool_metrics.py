"""Metrics of the connection pool, read when they are scraped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from psycopg_pool import AsyncConnectionPool

_FIGURES = {
    "pool_size": ("annals_postgres_connections", "Connections open."),
    "pool_available": ("annals_postgres_connections_idle", "Connections nobody uses."),
    "requests_waiting": ("annals_postgres_waiting", "Calls that wait for a connection."),
}


class PoolCollector(Collector):
    """Reports psycopg's own statistics."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self._pool = pool

    def describe(self) -> list[GaugeMetricFamily]:
        """Claim no names: a process may, in tests, hold two pools."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return one gauge for each figure."""
        stats = self._pool.get_stats()
        for figure, (name, text) in _FIGURES.items():
            yield GaugeMetricFamily(name, text, value=stats.get(figure, 0))
