"""What starts over an installation's directory: its PostgreSQL, and what storage is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from annals_local.child import Child, ChildSpec
from annals_local.files import read_json
from annals_local.identity import Identity
from annals_local.paths import LocalPaths
from annals_local.processes import end_leftovers

START_TIMEOUT_S = 60.0
log = structlog.get_logger()


async def clear_leftovers(paths: LocalPaths) -> None:
    """End what a killed supervisor left behind. The lock must be held."""
    paths.endpoints.unlink(missing_ok=True)
    if left := await asyncio.to_thread(end_leftovers, paths.processes):
        log.warning("ended what an earlier start left behind", names=left)
    paths.postgres_ready.unlink(missing_ok=True)


def postgres_spec(paths: LocalPaths) -> ChildSpec:
    """Return how PostgreSQL is run."""
    guard = ("annals_local.postgres_guard", str(paths.postgres), str(paths.postgres_ready))
    return ChildSpec("postgres", guard, paths.log("postgres"), dict)


def database_url(paths: LocalPaths) -> str:
    """Return where storage finds PostgreSQL; "" until it accepts connections."""
    url: str = read_json(paths.postgres_ready).get("app_url", "")
    return url


def storage_settings(paths: LocalPaths, identity: Identity, database_url: str) -> dict[str, str]:
    """Return the environment of any `annals-storage` over this directory."""
    return {
        "ANNALS_STORAGE_DATABASE_URL": database_url,
        "ANNALS_STORAGE_ADMIN_KEY_SHA256": identity.admin_key_sha256,
        "ANNALS_STORAGE_WORKER_KEY_SHA256": identity.worker_key_sha256,
        "ANNALS_STORAGE_SECRETS_KEY": identity.secrets_key,
        "ANNALS_STORAGE_DATA_DIR": str(paths.data),
        "ANNALS_STORAGE_INDEXER_NAME": "local",
    }


async def begin(child: Child, probe: Callable[[], Awaitable[bool]]) -> None:
    """Let a loaded child begin and wait until it is ready. Raises StartError."""
    await child.begin()
    await child.ready(probe, timeout_s=START_TIMEOUT_S)
