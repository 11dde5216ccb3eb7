"""Databases of their own in the session's server, for tests that break something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.rows import dict_row

from annals_local.postgres import LocalPostgres
from annals_storage.postgres.migrator import migrate


@dataclass(frozen=True, slots=True)
class ScratchDatabase:
    """An empty database with both roles, migrated unless asked otherwise."""

    server: Any
    name: str
    admin_url: str
    owner_url: str
    app_url: str

    def as_role(self, role: str) -> str:
        """The URL of another role."""
        return self.app_url.replace("annals_app@", f"{role}@")

    def admin(self, statement: str, params: Any = None) -> list[dict[str, Any]]:
        """Run one statement as superuser."""
        return run(self.admin_url, statement, params)


def run(url: str, statement: str, params: Any = None) -> list[dict[str, Any]]:
    """Run one statement in its own connection and transaction; return its rows."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        cursor = connection.execute(statement, params)
        return cursor.fetchall() if cursor.description else []


def as_tenant(
    url: str, tenant_id: str | None, statement: str, params: Any = None
) -> list[dict[str, Any]]:
    """Run one statement with the tenant set as the service sets it; None: not at all."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        if tenant_id is not None:
            connection.execute("SELECT set_config('annals.tenant_id', %s, true)", [tenant_id])
        cursor = connection.execute(statement, params)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def new_database(postgres: LocalPostgres) -> Iterator[Callable[[], ScratchDatabase]]:
    """Makes databases without any schema; all of them go at the end."""
    made: list[str] = []

    def make() -> ScratchDatabase:
        name = f"scratch_{uuid4().hex[:12]}"
        made.append(name)
        with psycopg.connect(postgres.admin_url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
            connection.execute(f'GRANT CREATE ON DATABASE "{name}" TO annals_owner')
        urls = (postgres.admin_url, postgres.owner_url, postgres.app_url)
        scratch = ScratchDatabase(
            postgres.server, name, *(url.replace("@/postgres?", f"@/{name}?") for url in urls)
        )
        scratch.admin("GRANT CREATE ON SCHEMA public TO annals_owner")
        return scratch

    yield make
    with psycopg.connect(postgres.admin_url, autocommit=True) as connection:
        for name in made:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def scratch(new_database: Callable[[], ScratchDatabase]) -> ScratchDatabase:
    """A migrated database that the test may break."""
    database = new_database()
    migrate(database.owner_url)
    return database
