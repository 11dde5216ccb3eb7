"""Wires the cache of assembled contexts."""

from __future__ import annotations

import grpc.aio

from annals.storage.v1 import context_cache_service_pb2_grpc
from annals_common.code_version import code_version
from annals_storage.app_adapters import Shared
from annals_storage.handlers.context_cache import ContextCacheHandler
from annals_storage.postgres.context_cache import PostgresContextCache


def add_context_cache(server: grpc.aio.Server, shared: Shared) -> None:
    """Serve ContextCacheService."""
    limits = shared.settings.context_cache_limits
    contexts = PostgresContextCache(shared.database, limits, code_version("annals_storage"))
    context_cache_service_pb2_grpc.add_ContextCacheServiceServicer_to_server(
        ContextCacheHandler(contexts), server
    )
