"""PostgreSQL as a process of the supervisor: `postgres_guard DIRECTORY READY_FILE`.

PostgreSQL detaches itself from whoever starts it. This process stands for it: it ends when
PostgreSQL ends, and stops PostgreSQL when it is asked to end.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil

from annals_local.files import write_private_json
from annals_local.postgres import LocalPostgres, start_postgres
from annals_local.processes import ProcessId

WATCH_SECONDS = 0.1
START_ATTEMPTS = 3


def main() -> None:
    """Start PostgreSQL, say where it is, watch it, stop it. Exits with 1 when it died."""
    directory, ready_path = (Path(argument) for argument in sys.argv[1:])
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    ready_path.unlink(missing_ok=True)
    forget_the_dead(directory)
    server = _start(directory)
    try:
        died = _watch(server, ready_path, stopped)
    finally:
        ready_path.unlink(missing_ok=True)
        server.stop()
    sys.exit(1 if died else 0)


def _start(directory: Path) -> LocalPostgres:
    """Start it, patiently: the wheel allows ten seconds, a busy machine may need more."""
    for _ in range(START_ATTEMPTS - 1):
        with suppress(subprocess.SubprocessError, FileNotFoundError):
            return start_postgres(directory)
        forget_the_dead(directory)
    return start_postgres(directory)


def forget_the_dead(directory: Path) -> None:
    """Remove what a killed server and its killed guard left behind."""
    (directory / ".handle_pids.json").unlink(missing_ok=True)
    pid_file = directory / "postmaster.pid"
    if pid_file.exists() and not _is_postgres(pid_file):
        pid_file.unlink()


def _is_postgres(pid_file: Path) -> bool:
    first_line, *_ = pid_file.read_text().splitlines() or [""]
    try:
        process = psutil.Process(int(first_line))
        return bool(process.name() == "postgres" and process.status() != psutil.STATUS_ZOMBIE)
    except (ValueError, psutil.NoSuchProcess):
        return False


def _watch(server: LocalPostgres, ready_path: Path, stopped: threading.Event) -> bool:
    """Return True when PostgreSQL died, False when it is to stop."""
    postmaster = ProcessId.of(server.server.get_pid())
    write_private_json(ready_path, {"pid": postmaster.pid, "app_url": server.app_url})
    while not stopped.wait(WATCH_SECONDS):
        if postmaster.process() is None:
            return True
    return False


if __name__ == "__main__":
    main()
