"""What every bench shares: figures with targets, facts about the machine, one JSON object last."""

from __future__ import annotations

import json
import operator
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

RESULTS_DIR = Path("build/bench")
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le}
_PACKAGES = (
    "grpcio",
    "protobuf",
    "psycopg",
    "uvloop",
    "qdrant-edge-py",
    "onnxruntime",
    "fastembed",
    "tiktoken",
    "numpy",
)
_SIGNIFICANT_DIGITS = 5
console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `target`, such as ">= 0.7", is None where nothing is to be reached."""

    name: str
    value: float
    unit: str
    target: str | None = None
    runs: Sequence[float] = ()

    @property
    def holds(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        comparison, bound = self.target.split()
        return _COMPARISONS[comparison](self.value, float(bound))

    def as_dict(self) -> dict[str, Any]:
        """Return the figure as it is written."""
        return {
            "name": self.name,
            "value": rounded(self.value),
            "unit": self.unit,
            "target": self.target,
            "holds": self.holds,
            "runs": [rounded(run) for run in self.runs],
        }


@dataclass(slots=True)
class Report:
    """The figures of one bench. `settings` and `notes` say how they came about."""

    bench: str
    settings: dict[str, Any]
    server_versions: dict[str, str] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, value: float, unit: str, target: str | None = None) -> None:
        """Add a figure measured once."""
        self._keep(Figure(name, value, unit, target))

    def add_runs(
        self, name: str, runs: Sequence[float], unit: str, target: str | None = None
    ) -> None:
        """Add a figure measured several times: the median counts."""
        self._keep(Figure(name, statistics.median(runs), unit, target, runs))

    def note(self, text: str) -> None:
        """Add a remark that a reader of the figures needs."""
        self.notes.append(text)
        console.print(f"note: {text}", highlight=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as it is written."""
        return {
            "bench": self.bench,
            "machine": machine(),
            "versions": {**versions(), **self.server_versions},
            "settings": self.settings,
            "notes": self.notes,
            "figures": [figure.as_dict() for figure in self.figures],
        }

    def write(self) -> None:
        """Write build/bench/<bench>.json and print the same object, last."""
        RESULTS_DIR.mkdir(parents=True, exist_ok=True)
        written = json.dumps(self.as_dict(), ensure_ascii=False)
        (RESULTS_DIR / f"{self.bench}.json").write_text(written + "\n", encoding="utf-8")
        sys.stdout.write(written + "\n")

    def _keep(self, figure: Figure) -> None:
        self.figures.append(figure)
        reached = {
            None: "",
            True: f"({figure.target}: holds)",
            False: f"({figure.target}: FALLS SHORT)",
        }
        console.print(
            f"{figure.name}: {rounded(figure.value)} {figure.unit} {reached[figure.holds]}",
            highlight=False,
        )


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Return the versions of the libraries that matter for speed."""
    return {name: metadata.version(name) for name in _PACKAGES}


def rounded(value: float) -> float:
    """Return a value without digits that mean nothing."""
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile by linear interpolation."""
    return float(np.percentile(values, percent))


def progress() -> Progress:
    """Return a progress display on stderr; silent where stderr is no terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")
