"""Chooses addresses: the usual ports when they are free, else any."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from annals_local.errors import PortTakenError

HOST = "127.0.0.1"
STORAGE_PORT = 50051
CONTEXT_PORT = 50052
STORAGE_METRICS_PORT = 9464
CONTEXT_METRICS_PORT = 9465


@dataclass(frozen=True, slots=True)
class Ports:
    """What to listen on. None: the usual port if free, else any. 0: any."""

    storage: int | None = None
    context: int | None = None
    storage_metrics: int | None = None
    context_metrics: int | None = None


ANY_PORTS = Ports(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Addresses:
    """`host:port` of every server. They stay the same over restarts of a service."""

    storage: str
    context: str
    storage_metrics: str
    context_metrics: str


def choose(ports: Ports) -> Addresses:
    """Find four free addresses. Raises PortTakenError for a port that was asked for."""
    wanted = (
        (ports.storage, STORAGE_PORT),
        (ports.context, CONTEXT_PORT),
        (ports.storage_metrics, STORAGE_METRICS_PORT),
        (ports.context_metrics, CONTEXT_METRICS_PORT),
    )
    # All are held until the last is chosen, so that no two are the same.
    bound = [_bound(asked, usual) for asked, usual in wanted]
    addresses = [f"{HOST}:{each.getsockname()[1]}" for each in bound]
    for each in bound:
        each.close()
    return Addresses(*addresses)


def _bound(asked: int | None, usual: int) -> socket.socket:
    if asked is not None:
        return _bind(asked)
    try:
        return _bind(usual)
    except PortTakenError:
        return _bind(0)


def _bind(port: int) -> socket.socket:
    listener = socket.socket()
    # As the servers do: a connection in TIME_WAIT does not keep a port from us.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(1)
    except OSError as error:
        listener.close()
        raise PortTakenError(f"port {port}: {error.strerror}; choose another one") from None
    return listener
