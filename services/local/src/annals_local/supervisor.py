"""PostgreSQL, storage and context as one: started, kept running, drained."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
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
        order = {"context": 0, "storage": 1, "postgres": 2}
        for child in sorted(self._children, key=lambda child: order[child.name]):
            await child.stop()
            log.info("process stopped", name=child.name)
        self._paths.processes.unlink(missing_ok=True)

    async def _clear(self) -> None:
        self._paths.endpoints.unlink(missing_ok=True)
        if left := await asyncio.to_thread(end_leftovers, self._paths.processes):
            log.warning("ended what an earlier start left behind", names=left)
        self._paths.postgres_ready.unlink(missing_ok=True)

    async def _start_processes(self, addresses: Addresses, identity: Identity) -> None:
        postgres = await self._begin(self._postgres())
        context = await self._begin(self._context(addresses))
        await postgres.ready(self._has_postgres, timeout_s=START_TIMEOUT_S)
        storage = await self._begin(self._storage(addresses, identity))
        await asyncio.gather(
            storage.ready(lambda: is_serving(addresses.storage), timeout_s=START_TIMEOUT_S),
            context.ready(lambda: is_serving(addresses.context), timeout_s=START_TIMEOUT_S),
        )
        for child in self._children:
            child.keep()

    async def _begin(self, spec: ChildSpec) -> Child:
        child = Child(spec, self._note_processes)
        self._children.append(child)
        await child.start()
        return child

    def _note_processes(self) -> None:
        running = {child.name: child.current for child in self._children if child.current}
        write_processes(self._paths.processes, {"supervisor": ProcessId.of(os.getpid()), **running})

    async def _has_postgres(self) -> bool:
        return self._paths.postgres_ready.exists()

    def _postgres(self) -> ChildSpec:
        places = (str(self._paths.postgres), str(self._paths.postgres_ready))
        return self._spec("postgres", ("annals_local.postgres_guard", *places), {})

    def _storage(self, addresses: Addresses, identity: Identity) -> ChildSpec:
        environment = {
            **_server("STORAGE", addresses.storage, addresses.storage_metrics),
            "ANNALS_STORAGE_DATABASE_URL": read_json(self._paths.postgres_ready)["app_url"],
            "ANNALS_STORAGE_ADMIN_KEY_SHA256": identity.admin_key_sha256,
            "ANNALS_STORAGE_DATA_DIR": str(self._paths.data),
            "ANNALS_STORAGE_INDEXER_NAME": "local",
        }
        return self._spec("storage", ("annals_storage", "serve"), environment)

    def _context(self, addresses: Addresses) -> ChildSpec:
        environment = {
            **_server("CONTEXT", addresses.context, addresses.context_metrics),
            "ANNALS_CONTEXT_STORAGE_ADDRESS": addresses.storage,
        }
        return self._spec("context", ("annals_context", "serve"), environment)

    def _spec(
        self, name: str, arguments: tuple[str, ...], environment: Mapping[str, str]
    ) -> ChildSpec:
        return ChildSpec(name, arguments, self._paths.log(name), environment)


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
