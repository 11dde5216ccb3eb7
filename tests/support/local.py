"""A local installation in a directory of its own, run as users run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annals_client import AnnalsClient, AsyncAnnalsClient, RetryPolicy
from annals_local.files import read_json
from annals_local.paths import LocalPaths
from annals_local.processes import ProcessId, read_processes

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 60.0
PATIENT = RetryPolicy(max_attempts=1000, max_backoff_s=0.1)
"""Tries until the call's deadline, longer than a service takes to start anew, and often: the
first call it could answer is not waited for in a pause.
"""


def command(root: Path) -> list[str]:
    ports = ("storage", "context", "storage-metrics", "context-metrics")
    any_ports = [part for name in ports for part in (f"--{name}-port", "0")]
    return [sys.executable, "-m", "annals_local", "up", "--data-dir", str(root), *any_ports]


def storage_tool(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `annals-local storage`."""
    run = [sys.executable, "-m", "annals_local", "storage", "--data-dir", str(root), *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=False, timeout=120)


def wait_until(
    condition: Callable[[], Any], *, timeout_s: float = START_TIMEOUT_S, what: str = ""
) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {timeout_s} s: {what or condition}"
        time.sleep(0.03)


@dataclass(frozen=True, slots=True)
class LocalRun:
    paths: LocalPaths
    supervisor: subprocess.Popen[bytes]

    def endpoints(self) -> dict[str, Any]:
        return read_json(self.paths.endpoints)

    def client(self) -> AnnalsClient:
        return AnnalsClient(**self._where(), retries=PATIENT)

    def async_client(self) -> AsyncAnnalsClient:
        return AsyncAnnalsClient(**self._where(), retries=PATIENT)

    def _where(self) -> dict[str, str]:
        return {name: self.endpoints()[name] for name in ("storage", "context", "api_key")}

    def processes(self) -> dict[str, ProcessId]:
        return read_processes(self.paths.processes)

    def postmaster(self) -> ProcessId:
        return ProcessId.of(read_json(self.paths.postgres_ready)["pid"])

    def journal(self, event: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self.paths.log("local").read_text().splitlines())
        return [line for line in lines if line["event"] == event]

    def signal(self, name: str, number: signal.Signals) -> ProcessId:
        """Send a signal to the process that runs under this name now."""
        process = self.processes()[name]
        os.kill(process.pid, number)
        return process

    def stop(self) -> int:
        self.supervisor.send_signal(signal.SIGTERM)
        return self.supervisor.wait(STOP_TIMEOUT_S)


def start_local(root: Path) -> LocalRun:
    paths = LocalPaths(root)
    paths.create()
    with (root / "logs" / "up.log").open("ab") as output:
        supervisor = subprocess.Popen(command(root), stdout=output, stderr=output)
    wait_until(lambda: paths.endpoints.exists() or supervisor.poll() is not None)
    assert supervisor.poll() is None, (root / "logs" / "up.log").read_text()
    return LocalRun(paths, supervisor)


@contextmanager
def running_local(root: Path) -> Iterator[LocalRun]:
    run = start_local(root)
    try:
        yield run
    finally:
        if run.supervisor.poll() is None:
            run.stop()
