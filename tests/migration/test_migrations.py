"""Migrations: they add up to schema.sql, run once, never change, and are needed to start."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import psycopg
import pytest
from tests.migration.dump_schema import SCHEMA_FILE, dump_schema
from tests.support.scratch import ScratchDatabase, run

from annals_storage.postgres import migrator
from annals_storage.postgres.database import Database
from annals_storage.postgres.guard import SchemaOutdatedError, check_database
from annals_storage.postgres.migrator import (
    Migration,
    MigrationError,
    load_migrations,
    migrate,
    missing_migrations,
)

NAMES = [migration.name for migration in load_migrations()]


def test_all_migrations_add_up_to_the_committed_schema(scratch: ScratchDatabase) -> None:
    assert dump_schema(scratch.owner_url) == SCHEMA_FILE.read_text(), (
        "regenerate it with `python -m tests.migration.dump_schema`"
    )


def test_a_change_outside_the_migrations_shows_in_the_dump(scratch: ScratchDatabase) -> None:
    scratch.admin("ALTER TABLE annals.conversations ADD COLUMN sneaked text")

    assert dump_schema(scratch.owner_url) != SCHEMA_FILE.read_text()


def test_names_are_numbered_without_gaps() -> None:
    assert NAMES
    assert [int(name[:4]) for name in NAMES] == list(range(1, len(NAMES) + 1))
    assert all(re.fullmatch(r"\d{4}_(pre|post)_\w+\.sql", name) for name in NAMES)


def test_are_applied_once(new_database: Callable[[], ScratchDatabase]) -> None:
    database = new_database()

    assert migrate(database.owner_url) == NAMES
    assert migrate(database.owner_url) == []
    rows = run(database.owner_url, "SELECT name FROM public.annals_migrations ORDER BY name")
    assert [row["name"] for row in rows] == NAMES


async def test_two_at_once_apply_them_once(new_database: Callable[[], ScratchDatabase]) -> None:
    database = new_database()

    applied = await asyncio.gather(
        *[asyncio.to_thread(migrate, database.owner_url) for _ in range(4)]
    )

    assert sorted(name for names in applied for name in names) == NAMES


def test_phases_are_applied_apart(
    new_database: Callable[[], ScratchDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = new_database()
    later = Migration("9999_post_later.sql", "post", "CREATE TABLE public.later (x int)")
    monkeypatch.setattr(migrator, "load_migrations", lambda: [*load_migrations(), later])

    before = migrate(database.owner_url, ("pre",))
    after = migrate(database.owner_url, ("post",))

    assert later.name not in before
    assert later.name in after


def test_a_changed_one_is_refused(
    scratch: ScratchDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    [first, *rest] = load_migrations()
    changed = Migration(first.name, first.phase, f"{first.text}\n-- edited")
    monkeypatch.setattr(migrator, "load_migrations", lambda: [changed, *rest])

    with pytest.raises(MigrationError, match=first.name):
        migrate(scratch.owner_url)


def test_a_failing_one_leaves_nothing_behind(
    scratch: ScratchDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Migration("9999_pre_broken.sql", "pre", "CREATE TABLE annals.half (); SELECT 1/0")
    monkeypatch.setattr(migrator, "load_migrations", lambda: [*load_migrations(), broken])

    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(scratch.owner_url)

    assert run(scratch.owner_url, "SELECT to_regclass('annals.half') AS half") == [{"half": None}]
    monkeypatch.undo()
    assert migrate(scratch.owner_url) == []


class TestStart:
    async def test_with_all_migrations_is_allowed(self, scratch: ScratchDatabase) -> None:
        await check(scratch.app_url)

    async def test_without_any_is_refused(
        self, new_database: Callable[[], ScratchDatabase]
    ) -> None:
        with pytest.raises(SchemaOutdatedError, match="annals-storage migrate"):
            await check(new_database().app_url)

    async def test_with_one_missing_is_refused(
        self, scratch: ScratchDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        newer = Migration("9999_pre_newer.sql", "pre", "SELECT 1")
        monkeypatch.setattr(migrator, "load_migrations", lambda: [*load_migrations(), newer])

        with pytest.raises(SchemaOutdatedError, match="9999_pre_newer"):
            await check(scratch.app_url)

    async def test_does_not_wait_for_what_comes_after_a_rollout(
        self, scratch: ScratchDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        later = Migration("9999_post_later.sql", "post", "SELECT 1")
        monkeypatch.setattr(migrator, "load_migrations", lambda: [*load_migrations(), later])

        await check(scratch.app_url)

    async def test_with_another_text_applied_is_refused(self, scratch: ScratchDatabase) -> None:
        scratch.admin("UPDATE public.annals_migrations SET sha256 = 'other'")

        with pytest.raises(MigrationError):
            await check(scratch.app_url)

    def test_with_a_newer_database_is_allowed(self) -> None:
        applied = {migration.name: migration.sha256 for migration in load_migrations()}

        assert missing_migrations({**applied, "9999_pre_newer.sql": "x"}) == []


async def check(url: str) -> None:
    database = Database(url, max_connections=1)
    await database.open()
    try:
        await check_database(database)
    finally:
        await database.close()
