"""Errors of a Qdrant server's client, as the port names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException

from annals_storage.vectors import payload

ENGINE_ERRORS = (
    grpc.RpcError,
    ApiException,
    QdrantException,
    OSError,
    RuntimeError,  # a client that was closed
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise EngineUnavailableError for what the client raises."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise payload.unavailable() from error
