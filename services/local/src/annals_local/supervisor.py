"""PostgreSQL, storage, context and a worker as one: started, kept running, drained."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog

from annals_local.child import Child, ChildSpec
from annals_local.files import write_private_json
from annals_local.identity import Identity, ensure_tenant, load_identity
from annals_local.installation import (
    begin,
    clear_leftovers,
    database_url,
    postgres_spec,
    storage_settings,
)
from annals_local.paths import LocalPaths
from annals_local.ports import Addresses, Ports, choose
from annals_local.probes import is_serving
from annals_local.processes import ProcessId, write_processes

DRAIN_SECONDS = 15
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Serving:
    """What runs where, and who may use it."""

    addresses: Addresses
    identity: Identity
    endpoints_path: Path


class Supervisor:
    """Owns the processes of one directory. Its lock must be held."""

    def __init__(self, paths: LocalPaths, ports: Ports) -> None:
        self._paths, self._ports = paths, ports
        self._children: list[Child] = []
        self._database_url = ""

    async def start(self) -> Serving:
        """Start everything; return once both services serve. Raises LocalError."""
        await clear_leftovers(self._paths)
        identity = load_identity(self._paths.identity)
        addresses = choose(self._ports)
        await self._start_processes(addresses, identity)
        known = await ensure_tenant(self._paths.identity, identity, addresses.storage)
        write_private_json(self._paths.endpoints, _endpoints(addresses, known))
        return Serving(addresses, known, self._paths.endpoints)

    async def stop(self) -> None:
        """Stop the worker, drain context, then storage, then stop PostgreSQL."""
        self._paths.endpoints.unlink(missing_ok=True)
        for child in reversed(self._children):
            await child.stop()
            log.info("process stopped", name=child.name)
        self._paths.processes.unlink(missing_ok=True)

    async def _start_processes(self, addresses: Addresses, identity: Identity) -> None:
        postgres, storage, context, worker = self._children = [
            Child(spec, self._note_processes) for spec in self._specs(addresses, identity)
        ]
        await asyncio.gather(*(child.load() for child in (postgres, storage, context)))
        await begin(postgres, self._has_postgres)
        await begin(storage, lambda: is_serving(addresses.storage))
        await begin(context, lambda: is_serving(addresses.context))
        # Nobody waits for the worker, and it takes nothing from those that are waited for.
        await worker.load()
        await worker.begin()
        for child in self._children:
            child.keep()

    def _note_processes(self) -> None:
        running = {child.name: child.current for child in self._children if child.current}
        write_processes(self._paths.processes, {"supervisor": ProcessId.of(os.getpid()), **running})

    async def _has_postgres(self) -> bool:
        # The same after a restart, so storage, restarted meanwhile, need not wait for it.
        self._database_url = database_url(self._paths)
        return bool(self._database_url)

    def _specs(self, addresses: Addresses, identity: Identity) -> Iterator[ChildSpec]:
        """In the order of their start; each relies on those before it."""
        paths = self._paths
        yield postgres_spec(paths)
        yield ChildSpec(
            "storage",
            ("annals_storage.__main__", "serve"),
            paths.log("storage"),
            lambda: self._storage(addresses, identity),
        )
        yield ChildSpec(
            "context",
            ("annals_context.__main__", "serve"),
            paths.log("context"),
            lambda: _context(addresses, identity),
        )
        yield ChildSpec(
            "worker",
            ("annals_context.__main__", "work"),
            paths.log("worker"),
            lambda: _worker(addresses, identity),
        )

    def _storage(self, addresses: Addresses, identity: Identity) -> dict[str, str]:
        return {
            **_server("STORAGE", addresses.storage, addresses.storage_metrics),
            **storage_settings(self._paths, identity, self._database_url),
        }


def _context(addresses: Addresses, identity: Identity) -> dict[str, str]:
    return {
        **_server("CONTEXT", addresses.context, addresses.context_metrics),
        "ANNALS_CONTEXT_STORAGE_ADDRESS": addresses.storage,
        "ANNALS_CONTEXT_VIEW_KEY": identity.view_key,
    }


def _worker(addresses: Addresses, identity: Identity) -> dict[str, str]:
    return {
        "ANNALS_CONTEXT_STORAGE_ADDRESS": addresses.storage,
        "ANNALS_CONTEXT_WORKER__KEY": identity.worker_key,
        "ANNALS_CONTEXT_WORKER__CONCURRENCY": "1",
    }


def _server(service: str, address: str, metrics_address: str) -> dict[str, str]:
    settings = {
        "ADDRESS": address,
        "METRICS_ADDRESS": metrics_address,
        "REFLECTION": "true",
        "DRAIN_SECONDS": str(DRAIN_SECONDS),
    }
    return {f"ANNALS_{service}_SERVER__{name}": value for name, value in settings.items()}


def _endpoints(addresses: Addresses, identity: Identity) -> dict[str, object]:
    return {
        "storage": addresses.storage,
        "context": addresses.context,
        "metrics": {"storage": addresses.storage_metrics, "context": addresses.context_metrics},
        "tenant_id": identity.tenant_id,
        "agent_id": identity.agent_id,
        "api_key": identity.api_key,
        "admin_key": identity.admin_key,
    }
