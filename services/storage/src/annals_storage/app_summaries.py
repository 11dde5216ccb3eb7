"""Wires SummaryService."""

from __future__ import annotations

import grpc.aio

from annals.storage.v1 import summary_service_pb2_grpc
from annals_storage.app_adapters import Shared
from annals_storage.handlers.access import Access
from annals_storage.handlers.summaries import SummaryHandler
from annals_storage.postgres.summaries import PostgresSummaries


def add_summaries(server: grpc.aio.Server, shared: Shared, access: Access) -> None:
    """Serve SummaryService."""
    summary_service_pb2_grpc.add_SummaryServiceServicer_to_server(
        SummaryHandler(PostgresSummaries(shared.database), access), server
    )
