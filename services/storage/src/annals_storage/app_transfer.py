"""Wires exports and imports."""

from __future__ import annotations

from annals_storage.app_adapters import Shared
from annals_storage.commands.exporting import ExportConversation
from annals_storage.commands.importing import ImportConversations
from annals_storage.embedding.tokens import TiktokenCounter
from annals_storage.handlers.transfer import TransferHandler
from annals_storage.postgres.transfer import PostgresTransfer


def transfer_handler(shared: Shared) -> TransferHandler:
    """Return what writes and takes files of conversations."""
    store, cold = PostgresTransfer(shared.database), shared.adapters.cold
    return TransferHandler(
        ExportConversation(store, cold),
        ImportConversations(
            store,
            cold,
            shared.live.notifications,
            TiktokenCounter(),
            embedding_dimensions=lambda: shared.adapters.embedder.dimensions,
        ),
    )
