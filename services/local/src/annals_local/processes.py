"""Tells processes apart, also after their pid was given to another one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from annals_local.files import read_json, write_private_json

END_TIMEOUT_S = 30.0
KILL_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A pid and the moment its process began, in seconds since 1970."""

    pid: int
    create_time: float

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """Look a running process up. Raises psutil.NoSuchProcess."""
        return cls(pid, psutil.Process(pid).create_time())

    def process(self) -> psutil.Process | None:
        """Return the process while it runs; a zombie has ended."""
        try:
            process = psutil.Process(self.pid)
            same = process.create_time() == self.create_time
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def write_processes(path: Path, processes: dict[str, ProcessId]) -> None:
    """Note what runs."""
    write_private_json(path, {name: asdict(each) for name, each in processes.items()})


def read_processes(path: Path) -> dict[str, ProcessId]:
    """Read what ran last; {} when nothing is known."""
    noted = read_json(path)
    return {name: ProcessId(each["pid"], each["create_time"]) for name, each in noted.items()}


def end_leftovers(path: Path) -> list[str]:
    """Wait for what a killed supervisor left behind to drain; kill what does not end.

    Returns the names of the processes that still ran.
    """
    running = {name: each.process() for name, each in read_processes(path).items()}
    left = {name: process for name, process in running.items() if process is not None}
    for process in left.values():
        _signal(process)
    _, stubborn = psutil.wait_procs(list(left.values()), timeout=END_TIMEOUT_S)
    _kill(stubborn)
    return list(left)


def _signal(process: psutil.Process) -> None:
    try:
        process.terminate()
    except psutil.NoSuchProcess:
        return


def _kill(processes: Iterable[psutil.Process]) -> None:
    stubborn = list(processes)
    for process in stubborn:
        process.kill()
    psutil.wait_procs(stubborn, timeout=KILL_TIMEOUT_S)
