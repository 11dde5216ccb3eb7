"""`annals-local storage`: what `annals-storage` does, over a local installation.

Beside services that serve it uses their PostgreSQL. Else PostgreSQL is started for it alone.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence

from annals_common.server import wait_for_signal
from annals_local.child import Child
from annals_local.errors import AlreadyRunningError, LocalError
from annals_local.identity import load_identity
from annals_local.installation import (
    begin,
    clear_leftovers,
    database_url,
    postgres_spec,
    storage_settings,
)
from annals_local.journal import open_journal
from annals_local.lock import exclusive
from annals_local.paths import LocalPaths
from annals_local.processes import write_processes

ALONE = frozenset({"index", "optimize", "serve", "verify"})
"""Commands that need the embedded engine for themselves."""
_OF_A_REBUILD_AT_REST = frozenset({"--no-wait", "--cancel", "--help"})
_SIGNAL_EXIT_CODE = 128


def run_storage(paths: LocalPaths, arguments: Sequence[str]) -> int:
    """Run `annals-storage ARGUMENTS`; return its exit code. Raises LocalError."""
    if not paths.identity.exists():
        raise LocalError(f"{paths.root} is no installation of Annals; `annals-local up` makes one")
    try:
        with exclusive(paths.lock):
            _refuse_endless(arguments)
            open_journal(paths.log("local"))
            return asyncio.run(_with_postgres(paths, arguments))
    except AlreadyRunningError:
        if not paths.endpoints.exists():
            raise
    _refuse_beside(paths, arguments)
    return asyncio.run(_run(_settings(paths), arguments))


def _refuse_endless(arguments: Sequence[str]) -> None:
    if arguments[0] == "rebuild" and not _OF_A_REBUILD_AT_REST.intersection(arguments):
        raise LocalError(
            "a rebuild is done by what serves: start `annals-local up` and run this beside it, or "
            "leave it for the next start with --no-wait"
        )


def _refuse_beside(paths: LocalPaths, arguments: Sequence[str]) -> None:
    if arguments[0] in ALONE:
        raise LocalError(
            f"`annals-storage {arguments[0]}` needs the vector engine for itself: stop what serves "
            f"from {paths.root} first (Ctrl-C where it runs)"
        )


async def _with_postgres(paths: LocalPaths, arguments: Sequence[str]) -> int:
    await clear_leftovers(paths)
    postgres = Child(postgres_spec(paths), lambda: None)
    try:
        await postgres.load()
        if postgres.current:
            # A start after this process was killed ends it.
            write_processes(paths.processes, {"postgres": postgres.current})
        await begin(postgres, lambda: _is_there(paths))
        return await _run(_settings(paths), arguments)
    finally:
        await postgres.stop()
        paths.processes.unlink(missing_ok=True)


async def _is_there(paths: LocalPaths) -> bool:
    return bool(database_url(paths))


def _settings(paths: LocalPaths) -> dict[str, str]:
    return storage_settings(paths, load_identity(paths.identity), database_url(paths))


async def _run(settings: Mapping[str, str], arguments: Sequence[str]) -> int:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "annals_storage", *arguments), env={**os.environ, **settings}
    )
    ended, stopped = asyncio.create_task(process.wait()), asyncio.create_task(wait_for_signal())
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        process.terminate()
    stopped.cancel()
    code = await ended
    return code if code >= 0 else _SIGNAL_EXIT_CODE - code
