"""PostgreSQL, storage and context as one: started, kept running, drained."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog

from annals_local.child import Child, ChildSpec
from annals_local.files import read_json, write_private_json
from annals_local.identity import Identity, ensure_tenant, load_identity
from annals_local.paths import LocalPaths
from annals_local.ports import Addresses, Ports, choose
from annals_local.probes import is_serving
from annals_local.processes import ProcessId, end_leftovers, write_processes

START_TIMEOUT_S = 60.0
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
        await self._clear()
        identity = load_identity(self._paths.identity)
        addresses = choose(self._ports)
        await self._start_processes(addresses, identity)
        known = await ensure_tenant(self._paths.identity, identity, addresses.storage)
        write_private_json(self._paths.endpoints, _endpoints(addresses, known))
        return Serving(addresses, known, self._paths.endpoints)

    async def stop(self) -> None:
        """Drain context, then storage, then stop PostgreSQL."""
        self._paths.endpoints.unlink(missing_ok=True)
        for child in reversed(self._children):
            await child.stop()
            log.info("process stopped", name=child.name)
        self._paths.processes.unlink(missing_ok=True)

    async def _clear(self) -> None:
        self._paths.endpoints.unlink(missing_ok=True)
        if left := await asyncio.to_thread(end_leftovers, self._paths.processes):
            log.warning("ended what an earlier start left behind", names=left)
        self._paths.postgres_ready.unlink(missing_ok=True)

    async def _start_processes(self, addresses: Addresses, identity: Identity) -> None:
        postgres, storage, context = self._children = [
            Child(spec, self._note_processes) for spec in self._specs(addresses, identity)
        ]
        await asyncio.gather(*(child.load() for child in self._children))
        await _begin(postgres, self._has_postgres)
        await _begin(storage, lambda: is_serving(addresses.storage))
        await _begin(context, lambda: is_serving(addresses.context))
        for child in self._children:
            child.keep()

    def _note_processes(self) -> None:
        running = {child.name: child.current for child in self._children if child.current}
        write_processes(self._paths.processes, {"supervisor": ProcessId.of(os.getpid()), **running})

    async def _has_postgres(self) -> bool:
        # The same after a restart, so storage, restarted meanwhile, need not wait for it.
        self._database_url = read_json(self._paths.postgres_ready).get("app_url", "")
        return bool(self._database_url)

    def _specs(self, addresses: Addresses, identity: Identity) -> Iterator[ChildSpec]:
        """In the order of their start; each relies on those before it."""
        paths = self._paths
        guard = ("annals_local.postgres_guard", str(paths.postgres), str(paths.postgres_ready))
        yield ChildSpec("postgres", guard, paths.log("postgres"), dict)
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

    def _storage(self, addresses: Addresses, identity: Identity) -> dict[str, str]:
        return {
            **_server("STORAGE", addresses.storage, addresses.storage_metrics),
            "ANNALS_STORAGE_DATABASE_URL": self._database_url,
            "ANNALS_STORAGE_ADMIN_KEY_SHA256": identity.admin_key_sha256,
            "ANNALS_STORAGE_SECRETS_KEY": identity.secrets_key,
            "ANNALS_STORAGE_DATA_DIR": str(self._paths.data),
            "ANNALS_STORAGE_INDEXER_NAME": "local",
        }


async def _begin(child: Child, probe: Callable[[], Awaitable[bool]]) -> None:
    await child.begin()
    await child.ready(probe, timeout_s=START_TIMEOUT_S)


def _context(addresses: Addresses, identity: Identity) -> dict[str, str]:
    return {
        **_server("CONTEXT", addresses.context, addresses.context_metrics),
        "ANNALS_CONTEXT_STORAGE_ADDRESS": addresses.storage,
        "ANNALS_CONTEXT_VIEW_KEY": identity.view_key,
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
