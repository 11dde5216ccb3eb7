"""Checks at start: isolation cannot be bypassed, the schema fits, commits are durable."""

from __future__ import annotations

from typing import Any

import structlog

from annals_storage.postgres.database import Database, sql
from annals_storage.postgres.migrator import missing_migrations

log = structlog.get_logger()


class UnsafeRoleError(RuntimeError):
    """The role could read across tenants; the service must not start with it."""


class SchemaOutdatedError(RuntimeError):
    """Migrations are missing; run `annals-storage migrate` first."""


async def check_database(database: Database) -> None:
    """Refuse a role that could bypass row-level security or a schema that is behind; warn
    loudly when a commit would not survive a crash.
    """
    [[facts]] = await database.run_untenanted((sql("role_facts"), {}))
    refuse_unsafe_role(facts)
    await _check_schema(database)
    _warn_if_not_durable(facts)


def refuse_unsafe_role(facts: dict[str, Any]) -> None:
    """Raise UnsafeRoleError with every reason, if there is one."""
    reasons = [
        *[f"it is or can become the superuser {name}" for name in facts["superusers"]],
        *[f"it is or can become {name}, which has BYPASSRLS" for name in facts["bypassing"]],
        *[f"it is or can become the tables' owner {owner}" for owner in facts["owned_through"]],
        *[f"row-level security is not forced on annals.{name}" for name in facts["unforced"]],
    ]
    if reasons:
        raise UnsafeRoleError(
            f"refusing to start as {facts['role']}: {'; '.join(reasons)}. "
            "Connect as annals_app (see `annals-storage roles`)."
        )


async def _check_schema(database: Database) -> None:
    query = "SELECT name, sha256 FROM public.annals_migrations"
    exists = "SELECT to_regclass('public.annals_migrations') IS NOT NULL AS found"
    [[row]] = await database.run_untenanted((exists, {}))
    [rows] = await database.run_untenanted((query, {})) if row["found"] else [[]]
    if missing := missing_migrations({item["name"]: item["sha256"] for item in rows}):
        raise SchemaOutdatedError(f"run `annals-storage migrate` first; missing: {missing}")


def _warn_if_not_durable(facts: dict[str, Any]) -> None:
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        if facts[setting] == "off":
            log.warning("acknowledged writes can be lost", setting=setting, value="off")
