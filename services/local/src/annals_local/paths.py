"""Where one local installation keeps its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LocalPaths:
    """Everything lies under `root`, which belongs to one supervisor at a time."""

    root: Path

    @property
    def lock(self) -> Path:
        """Held while a supervisor runs."""
        return self.root / "lock"

    @property
    def endpoints(self) -> Path:
        """Addresses and keys for clients; there while the services serve."""
        return self.root / "endpoints.json"

    @property
    def identity(self) -> Path:
        """The keys, the tenant and the agent, kept from start to start."""
        return self.root / "identity.json"

    @property
    def processes(self) -> Path:
        """The processes that run now."""
        return self.root / "pids.json"

    @property
    def postgres(self) -> Path:
        """PostgreSQL's own directory."""
        return self.root / "pg"

    @property
    def postgres_ready(self) -> Path:
        """Written by PostgreSQL's guard once it accepts connections."""
        return self.root / "postgres.json"

    @property
    def data(self) -> Path:
        """Storage's directory: the model and the vector engine."""
        return self.root / "data"

    def log(self, name: str) -> Path:
        """The log of one process."""
        return self.root / "logs" / f"{name}.log"

    def create(self) -> None:
        """Make the directories."""
        self.log("").parent.mkdir(parents=True, exist_ok=True)
        self.data.mkdir(exist_ok=True)
