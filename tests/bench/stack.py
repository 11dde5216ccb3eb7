"""PostgreSQL and both services as processes of their own, in a directory that goes at the end."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import UUID

import psycopg

from annals_client import AnnalsClient, AnnalsClientError
from annals_local.postgres import LocalPostgres, start_postgres

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
POLL_SECONDS = 0.05
CALL_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Account:
    """A tenant and its key."""

    tenant_id: UUID
    api_key: str


@dataclass(slots=True)
class Stack:
    """A running installation."""

    postgres: LocalPostgres
    data_dir: Path
    log_dir: Path
    admin_key: str
    storage: str = ""
    context: str = ""
    storage_pid: int = 0

    def client(self, api_key: str = "") -> AnnalsClient:
        """Return a client of both services."""
        return AnnalsClient(
            self.storage,
            self.context,
            api_key=api_key,
            admin_key=self.admin_key,
            timeout=CALL_TIMEOUT_S,
        )

    def create_tenant(self, name: str) -> Account:
        """Create a tenant of its own."""
        with self.client() as client:
            created = client.tenants.create(name)
        return Account(UUID(created.tenant.tenant_id), created.api_key_secret)

    def server_versions(self) -> dict[str, str]:
        """Return the version of PostgreSQL."""
        with psycopg.connect(self.postgres.admin_url) as connection:
            version = connection.execute("SHOW server_version").fetchone()
        return {"postgresql": str(version[0]) if version else "unknown"}

    def postgres_pid(self) -> int:
        """Return the postmaster's pid."""
        return int(self.postgres.server.get_postmaster_info().pid)

    def storage_env(self) -> dict[str, str]:
        """Return the settings of the storage service, without an address."""
        return {
            "ANNALS_STORAGE_DATABASE_URL": self.postgres.app_url,
            "ANNALS_STORAGE_ADMIN_KEY_SHA256": hashlib.sha256(self.admin_key.encode()).hexdigest(),
            "ANNALS_STORAGE_DATA_DIR": str(self.data_dir),
            "ANNALS_STORAGE_EMBEDDING_THREADS": str(os.cpu_count() or 1),
        }


@contextmanager
def database_only(home: Path | None = None) -> Iterator[Stack]:
    """Start PostgreSQL alone; services are added by `serving`. `home`: a folder that stays."""
    with ExitStack() as folders:
        if home is None:
            temporary = tempfile.TemporaryDirectory(prefix="annals-bench-")
            home = Path(folders.enter_context(temporary))
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        postgres = start_postgres(home / "postgres")
        try:
            yield Stack(postgres, home / "data", home, secrets.token_hex(16))
        finally:
            postgres.stop()


@contextmanager
def running_stack(home: Path | None = None) -> Iterator[Stack]:
    """Start PostgreSQL, storage and context; return once both services serve.

    `home`: a folder that stays, and that a later run continues with.
    """
    with database_only(home) as stack, serving(stack):
        yield stack


@contextmanager
def serving(stack: Stack, *, profile_to: Path | None = None) -> Iterator[Stack]:
    """Add storage and context. `profile_to`: where storage leaves a cProfile of its run."""
    storage_at, context_at = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    storage_env = {**stack.storage_env(), "ANNALS_STORAGE_SERVER__ADDRESS": storage_at}
    context_env = {
        "ANNALS_CONTEXT_STORAGE_ADDRESS": storage_at,
        "ANNALS_CONTEXT_SERVER__ADDRESS": context_at,
    }
    storage = ["tests.bench.profiled", str(profile_to)] if profile_to else ["annals_storage"]
    started = []
    with ExitStack() as processes:
        for module, env in ((storage, storage_env), (["annals_context"], context_env)):
            command = [sys.executable, "-m", *module, "serve"]
            log = processes.enter_context((stack.log_dir / f"{module[0]}.log").open("wb"))
            started.append(processes.enter_context(process(command, env, log)))
        stack.storage, stack.context = storage_at, context_at
        stack.storage_pid = started[0].pid
        _await_serving(stack, started)
        yield stack


@contextmanager
def process(
    command: Sequence[str], env: Mapping[str, str], log: IO[bytes] | int
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process; SIGTERM at the end."""
    running = subprocess.Popen(command, env={**os.environ, **env}, stdout=log, stderr=log)
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_indexed(client: AnnalsClient, *, timeout_s: float = 3_600.0) -> float:
    """Wait until nothing of the client's tenant waits to be indexed; return the seconds."""
    started = time.monotonic()
    while client.index.status().pending_count:
        if time.monotonic() - started > timeout_s:
            raise TimeoutError(f"still indexing after {timeout_s} s")
        time.sleep(POLL_SECONDS)
    return time.monotonic() - started


def _await_serving(stack: Stack, started: Sequence[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    with stack.client() as client:
        while not _is_serving(client):
            has_ended = any(running.poll() is not None for running in started)
            if has_ended or time.monotonic() > deadline:
                logs = [path.read_text()[-2_000:] for path in stack.log_dir.glob("*.log")]
                raise RuntimeError("the services do not serve:\n" + "\n".join(logs))
            time.sleep(POLL_SECONDS)


def _is_serving(client: AnnalsClient) -> bool:
    try:
        return client.health.storage() == client.health.context() == "serving"
    except AnnalsClientError:
        return False
