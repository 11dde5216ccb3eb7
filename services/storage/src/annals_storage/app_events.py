"""Wires EventService."""

from __future__ import annotations

import grpc.aio

from annals.storage.v1 import event_service_pb2_grpc
from annals_common.composition import compose
from annals_storage.app_adapters import Shared
from annals_storage.commands.changing import ChangeEvents
from annals_storage.commands.watch_sources import WatchStores
from annals_storage.commands.watching import WatchEvents
from annals_storage.embedding.tokens import TiktokenCounter
from annals_storage.handlers.access import Access
from annals_storage.handlers.branches import BranchHandler
from annals_storage.handlers.event_changes import EventChangesHandler
from annals_storage.handlers.event_chunks import EventChunksHandler
from annals_storage.handlers.event_reads import EventReadHandler
from annals_storage.handlers.events import EventHandler
from annals_storage.handlers.periods import PeriodHandler
from annals_storage.handlers.threads import ThreadHandler
from annals_storage.handlers.watch import WatchHandler
from annals_storage.postgres.branches import PostgresBranches
from annals_storage.postgres.conversations import PostgresConversations
from annals_storage.postgres.event_changes import PostgresEventChanges
from annals_storage.postgres.events import PostgresEvents
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.postgres.threads import PostgresThreads
from annals_storage.postgres.turns import PostgresTurns
from annals_storage.postgres.watch import PostgresWatch


def add_events(server: grpc.aio.Server, shared: Shared, access: Access) -> None:
    """Serve EventService."""
    events = shared.warm(PostgresEvents(shared.database))
    counter = TiktokenCounter()
    event_service_pb2_grpc.add_EventServiceServicer_to_server(
        compose(
            event_service_pb2_grpc.EventServiceServicer,
            EventHandler(grouping=shared.grouping, counter=counter, access=access),
            EventReadHandler(events, access),
            PeriodHandler(events, access),
            EventChunksHandler(events, counter),
            ThreadHandler(shared.warm(PostgresThreads(shared.database))),
            EventChangesHandler(changes=_changes(shared), counter=counter, access=access),
            BranchHandler(PostgresBranches(shared.database)),
            WatchHandler(_watch(shared, events), access),
        ),
        server,
    )


def _changes(shared: Shared) -> ChangeEvents:
    return ChangeEvents(
        turns=shared.warm(PostgresTurns(shared.database)),
        changes=shared.warm(PostgresEventChanges(shared.database)),
        cold_storage=shared.adapters.cold,
        notifier=shared.live.notifications,
    )


def _watch(shared: Shared, events: PostgresEvents) -> WatchEvents:
    stores = WatchStores(
        PostgresConversations(shared.database),
        events,
        PostgresTenants(shared.database),
        shared.warm(PostgresWatch(shared.database)),
    )
    return WatchEvents(
        stores,
        shared.live.wakes,
        max_watches=shared.settings.max_watches,
        poll_seconds=shared.settings.watch_poll_seconds,
    )
