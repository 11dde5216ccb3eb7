"""CPU time of processes: what a call costs, however busy the machine is with other things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import psutil

Seconds = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CpuMeter:
    """Names of process trees with the pid at their root."""

    roots: Mapping[str, int]

    def read(self) -> Seconds:
        """Return the CPU seconds each tree has used so far, user and system."""
        return {name: _tree_seconds(psutil.Process(pid)) for name, pid in self.roots.items()}


def spent(before: Seconds, after: Seconds) -> dict[str, float]:
    """Return the seconds between two readings."""
    return {name: after[name] - before[name] for name in after}


def _tree_seconds(root: psutil.Process) -> float:
    return sum(_own_seconds(process) for process in (root, *root.children(recursive=True)))


def _own_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)
