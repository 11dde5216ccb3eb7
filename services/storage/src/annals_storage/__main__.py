"""`annals-storage`: serve, index, migrate, verify, maintain, and the tenants of an installation."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TypeVar
from uuid import UUID

import click
import uvloop

from annals_common.errors import AnnalsError
from annals_common.logs import configure_logging
from annals_common.server import until_signal
from annals_common.settings import describe_settings, load_settings
from annals_common.tokenizers import EncodingUnavailableError
from annals_storage.app import StorageApp, run_indexer
from annals_storage.app_adapters import admin_database, open_adapters
from annals_storage.app_background import jobs_command
from annals_storage.app_lifecycle import lifecycle, open_cold_storage
from annals_storage.app_rebuild import rebuild_command, summary, verify_generations
from annals_storage.cold.objects import ColdStorageUrlError
from annals_storage.commands.mirror_erasure import OutboxErasure
from annals_storage.commands.parked import list_parked, retry_parked
from annals_storage.commands.retaining import Maintain
from annals_storage.commands.tenancy import CreateTenant
from annals_storage.commands.verifying import reindex
from annals_storage.embedding.golden import GoldenMismatchError
from annals_storage.embedding.minilm import ModelUnavailableError
from annals_storage.postgres.database import sql
from annals_storage.postgres.guard import SchemaOutdatedError, UnsafeRoleError
from annals_storage.postgres.migrator import MigrationError, migrate
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.postgres.parked import PostgresParked
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.settings import StorageSettings
from annals_storage.vectors.edge_shard import ShardError, optimize_offline, shard_folders
from annals_storage.vectors.errors import CollectionMismatchError

T = TypeVar("T")
MAINTENANCE_CONNECTIONS = 4
"""One holds the tenant, one a conversation's cold storage, the others do the work."""
SWITCH_SECONDS = 0.0005
REFUSALS = (
    AnnalsError,
    ColdStorageUrlError,
    CollectionMismatchError,
    EncodingUnavailableError,
    GoldenMismatchError,
    MigrationError,
    ModelUnavailableError,
    SchemaOutdatedError,
    ShardError,
    UnsafeRoleError,
)
"""Reasons not to start that the operator can do something about."""


@click.group()
def main() -> None:
    """Annals' source of truth. Settings come from the environment: ANNALS_STORAGE_…"""


@main.command()
def serve() -> None:
    """Serve gRPC until SIGTERM, then drain."""
    _run(_serve)


async def _serve(settings: StorageSettings) -> None:
    app = StorageApp(settings)
    try:
        await until_signal(_started(app))
    finally:
        await app.stop()


async def _started(app: StorageApp) -> None:
    await app.start()
    if app.indexing is None:
        await asyncio.Event().wait()
    else:
        # An indexer that dies takes the process with it: its supervisor starts both anew. One
        # that works goes on while calls are drained.
        await asyncio.shield(app.indexing)


@main.command()
def index() -> None:
    """Mirror events until SIGTERM, without serving; then give back what is not done."""
    _run(_index)


async def _index(settings: StorageSettings) -> None:
    await until_signal(run_indexer(settings))


@main.command(name="migrate")
@click.option("--owner-url", envvar="ANNALS_STORAGE_OWNER_URL", required=True,
              help="libpq URL of the role annals_owner.")  # fmt: skip
@click.option("--phase", type=click.Choice(["pre", "post", "all"]), default="all",
              help="Before a rollout, after it, or both.")  # fmt: skip
def migrate_command(owner_url: str, phase: str) -> None:
    """Bring the schema up to this version."""
    try:
        applied = migrate(owner_url, ("pre", "post") if phase == "all" else (phase,))  # type: ignore[arg-type]
    except MigrationError as error:
        sys.exit(str(error))
    click.echo(f"applied: {', '.join(applied) or 'nothing, the schema is up to date'}")


@main.command(name="settings")
def settings_command() -> None:
    """List every setting: variable, default, meaning."""
    for variable, default, meaning in describe_settings(StorageSettings):
        click.echo(f"{variable}={default}\t{meaning}".rstrip())


@main.command()
def roles() -> None:
    """Print the SQL an administrator runs once to create the two roles."""
    click.echo(sql("roles"))


@main.command()
@click.option("--tenant", "tenant_id", type=click.UUID, help="Only this one.")
@click.option("--repair", is_flag=True,
              help="Delete points without a row; have the others mirrored again.")  # fmt: skip
def verify(tenant_id: UUID | None, *, repair: bool) -> None:
    """Compare the mirror with PostgreSQL, tenant by tenant; exit 1 when they differ, mended or not.

    What waits to be mirrored is no difference. The embedded engine must not be serving meanwhile.
    """

    async def act(settings: StorageSettings) -> bool:
        async with AsyncExitStack() as stack:
            _require_mirror(settings)
            adapters = await open_adapters(settings, stack, attempts=1)
            reports = await verify_generations(
                adapters, tenant_id, is_repaired=repair, progress=_say
            )
        click.echo(json.dumps(summary(reports), indent=2))
        return all(report.is_clean for report in reports.values())

    if not _run(act):
        sys.exit(1)


def _require_mirror(settings: StorageSettings) -> None:
    """Leave when there is no embedded engine to look at: all would seem to be missing."""
    if settings.vector_engine == "edge" and not shard_folders(settings.data_dir):
        sys.exit(
            f"there is no vector shard in {settings.data_dir.absolute()}: set "
            "ANNALS_STORAGE_DATA_DIR to the serving process's, or, if the mirror was lost, start "
            "storage and run `annals-storage reindex`"
        )


@main.command()
@click.option("--tenant", "tenant_id", type=click.UUID, help="Only this one.")
@click.option("--retry", is_flag=True, help="Have them tried again.")
def parked(tenant_id: UUID | None, *, retry: bool) -> None:
    """List what could not be mirrored and was given up, one JSON object a line."""

    async def act(settings: StorageSettings) -> None:
        async with admin_database(settings) as database:
            tenants, entries = PostgresTenants(database), PostgresParked(database)
            async for owner, entry in list_parked(tenants, entries, tenant_id):
                click.echo(json.dumps({"tenant_id": owner, **asdict(entry)}, default=str))
            if retry:
                _say(f"{await retry_parked(tenants, entries, tenant_id)} are tried again")

    _run(act)


@main.command(name="reindex")
def reindex_command() -> None:
    """Have everything mirrored again, after the engine lost its data. May run while serving."""
    _run(_reindex)


async def _reindex(settings: StorageSettings) -> None:
    async with admin_database(settings) as database:
        count = await reindex(PostgresTenants(database), PostgresOutbox(database))
    click.echo(f"{count} conversations enqueued; `annals status` shows what waits")


@main.command()
def optimize() -> None:
    """Compact the embedded engine. Refuses while a process serves from it."""
    _run(_optimize)


async def _optimize(settings: StorageSettings) -> None:
    if settings.vector_engine != "edge":
        raise click.UsageError("only the embedded engine is compacted here")
    # Of every generation: what was replaced may still be there.
    changed = [optimize_offline(path) for path in shard_folders(settings.data_dir)]
    click.echo("compacted" if any(changed) else "nothing to compact")


@main.command()
@click.option("--tenant", "tenant_id", type=click.UUID, help="Only this one.")
@click.option("--dry-run", is_flag=True, help="Count what is due; change nothing.")
def maintain(tenant_id: UUID | None, *, dry_run: bool) -> None:
    """Apply retention policies and print what was done; to be run daily. May run while serving."""

    async def act(settings: StorageSettings) -> None:
        async with admin_database(settings, max_connections=MAINTENANCE_CONNECTIONS) as database:
            # The engine may be another process's: its indexer works off what is enqueued.
            parts = lifecycle(
                database,
                OutboxErasure(PostgresOutbox(database)),
                open_cold_storage(database, settings),
            ).maintenance()
            command = Maintain(parts, progress=_say)
            counts = await (command.dry_run(tenant_id) if dry_run else command(tenant_id))
        click.echo(json.dumps(counts, indent=2))

    _run(act)


@main.group()
def tenant() -> None:
    """Tenants of this installation."""


@tenant.command(name="create")
@click.argument("display_name")
def create_tenant(display_name: str) -> None:
    """Create a tenant and print its id and first key, once."""

    async def act(settings: StorageSettings) -> None:
        async with admin_database(settings) as database:
            created, _, secret = await CreateTenant(PostgresTenants(database))(display_name)
        click.echo(json.dumps({"tenant_id": str(created.tenant_id), "api_key": secret}))

    _run(act)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _run(act: Callable[[StorageSettings], Awaitable[T]]) -> T:
    settings = load_settings(StorageSettings)
    configure_logging("storage", settings.server.log_level)
    # Threads of the model and the engine hand over to the event loop ten times sooner than by
    # default: a sixth off the median search.
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_as_coroutine(act, settings))
    except REFUSALS as error:
        sys.exit(str(error))


async def _as_coroutine(
    act: Callable[[StorageSettings], Awaitable[T]], settings: StorageSettings
) -> T:
    return await act(settings)


main.add_command(rebuild_command(_run))
main.add_command(jobs_command(_run))

if __name__ == "__main__":
    main()
