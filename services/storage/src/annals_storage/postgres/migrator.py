"""Plain SQL migrations: `NNNN_pre_*.sql` before a rollout, `NNNN_post_*.sql` after it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, cast

import psycopg

Phase = Literal["pre", "post"]

_NAME = re.compile(r"(?P<number>\d{4})_(?P<phase>pre|post)_\w+\.sql")
_ADVISORY_LOCK = 4_918_203_771
_CREATE_LEDGER = """
CREATE TABLE IF NOT EXISTS public.annals_migrations (
  name text PRIMARY KEY,
  sha256 text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)
"""
_GRANT_LEDGER = "GRANT SELECT ON public.annals_migrations TO annals_app"


class MigrationError(RuntimeError):
    """The database and the migrations of this version do not fit together."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    name: str
    phase: Phase
    text: str

    @property
    def sha256(self) -> str:
        """Hex digest of the text; an applied migration never changes."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def load_migrations() -> list[Migration]:
    """Return all migrations in order."""
    folder = files("annals_storage.postgres").joinpath("migrations")
    found = []
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if match := _NAME.fullmatch(entry.name):
            phase = cast("Phase", match["phase"])
            found.append(Migration(entry.name, phase, entry.read_text()))
    return found


def migrate(conninfo: str, phases: tuple[Phase, ...] = ("pre", "post")) -> list[str]:
    """Apply what is missing, as the owner role; return the names applied.

    Several processes may call this at once: one applies, the others wait. Raises
    MigrationError when an applied file was changed afterwards.
    """
    applied: list[str] = []
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_ADVISORY_LOCK])
        connection.execute(_CREATE_LEDGER)
        connection.execute(_GRANT_LEDGER)
        done = _applied(connection)
        for migration in load_migrations():
            if _is_missing(migration, done) and migration.phase in phases:
                _apply(connection, migration)
                applied.append(migration.name)
    return applied


def missing_migrations(applied: dict[str, str], phase: Phase = "pre") -> list[str]:
    """Return the names this version needs and the database lacks. `applied`: name to sha256."""
    return [m.name for m in load_migrations() if m.phase == phase and _is_missing(m, applied)]


def _applied(connection: psycopg.Connection[tuple[str, str]]) -> dict[str, str]:
    rows = connection.execute("SELECT name, sha256 FROM public.annals_migrations")
    return dict(rows.fetchall())


def _is_missing(migration: Migration, done: dict[str, str]) -> bool:
    if migration.name not in done:
        return True
    if done[migration.name] != migration.sha256:
        raise MigrationError(
            f"{migration.name} was applied with another text; add a migration instead"
        )
    return False


def _apply(connection: psycopg.Connection[tuple[str, str]], migration: Migration) -> None:
    with connection.transaction():
        connection.execute(migration.text)
        connection.execute(
            "INSERT INTO public.annals_migrations (name, sha256) VALUES (%s, %s)",
            [migration.name, migration.sha256],
        )
