"""A real PostgreSQL for the session, and an empty database in it for whoever asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from annals_local.postgres import LocalPostgres, start_postgres


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """The server of this test session, with both roles and the schema."""
    server = start_postgres(tmp_path_factory.mktemp("pg"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def own_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """A server for one module alone, which may be stopped."""
    server = start_postgres(tmp_path_factory.mktemp("pg"))
    yield server
    server.stop()
