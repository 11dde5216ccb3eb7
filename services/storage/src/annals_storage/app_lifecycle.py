"""Wires erasure, retention and cold storage, for the service and for `maintain`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import grpc.aio

from annals.storage.v1 import erasure_service_pb2_grpc, lifecycle_service_pb2_grpc
from annals_storage.cold.objects import FsspecObjects
from annals_storage.commands.cold_storage import ColdStorage
from annals_storage.commands.erasing import Erase, ErasureAdapters
from annals_storage.commands.retaining import MaintenanceParts
from annals_storage.commands.verifying_erasure import VerifyErasure
from annals_storage.handlers.erasure import ErasureHandler
from annals_storage.handlers.lifecycle import LifecycleHandler
from annals_storage.ports.lifecycle import MirrorCount, MirrorErasure
from annals_storage.postgres.cold_segments import PostgresColdSegments
from annals_storage.postgres.database import Database
from annals_storage.postgres.erasure import PostgresErasure
from annals_storage.postgres.receipts import PostgresReceipts
from annals_storage.postgres.retention import PostgresRetention
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.settings import StorageSettings


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The parts of the lifecycle of one process."""

    database: Database
    adapters: ErasureAdapters
    erase: Erase

    def register(self, server: grpc.aio.Server, mirror: MirrorCount) -> None:
        """Serve ErasureService and LifecycleService."""
        verify = VerifyErasure(self.adapters, mirror)
        erasure_service_pb2_grpc.add_ErasureServiceServicer_to_server(
            ErasureHandler(self.erase, verify, self.adapters.receipts), server
        )
        lifecycle_service_pb2_grpc.add_LifecycleServiceServicer_to_server(
            LifecycleHandler(PostgresRetention(self.database), self.adapters.cold), server
        )

    def maintenance(self) -> MaintenanceParts:
        """Return what a maintenance works with."""
        return MaintenanceParts(
            tenants=self.adapters.tenants,
            retention=PostgresRetention(self.database),
            receipts=self.adapters.receipts,
            cold=self.adapters.cold,
            erase=self.erase,
        )


def open_cold_storage(database: Database, settings: StorageSettings) -> ColdStorage:
    """Return cold storage as the settings say. Raises ColdStorageUrlError."""
    url = settings.cold_storage_url
    objects = FsspecObjects(url, settings.cold_storage_arguments) if url else None
    return ColdStorage(PostgresColdSegments(database), objects)


def lifecycle(
    database: Database,
    mirror: MirrorErasure,
    cold: ColdStorage,
    *,
    forget_key: Callable[[UUID], None] = lambda _: None,
) -> Lifecycle:
    """Return the parts over these adapters."""
    adapters = ErasureAdapters(
        rows=PostgresErasure(database),
        receipts=PostgresReceipts(database),
        mirror=mirror,
        cold=cold,
        tenants=PostgresTenants(database),
    )
    return Lifecycle(database, adapters, Erase(adapters, forget_key=forget_key))
