"""Channels: how they resolve, balance and stay alive."""

from __future__ import annotations

import json

import grpc
import grpc.aio

from annals_client.config import Tls

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_SERVICE_CONFIG: dict[str, list[dict[str, dict[str, str]]]] = {
    "loadBalancingConfig": [{"round_robin": {}}]
}
OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # gRPC waits up to two minutes between connection attempts; a restart takes seconds.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


def target_of(address: str) -> str:
    """Turn `host:port` into a target that follows every address behind the name."""
    return address if ":///" in address or address.startswith("unix:") else f"dns:///{address}"


def open_channel(address: str, tls: Tls | None) -> grpc.Channel:
    """Open a channel for threads. Connects on first use."""
    target = target_of(address)
    if tls is None:
        return grpc.insecure_channel(target, options=OPTIONS)
    return grpc.secure_channel(target, tls.credentials(), options=OPTIONS)


def open_aio_channel(address: str, tls: Tls | None) -> grpc.aio.Channel:
    """Open a channel for the running event loop. Connects on first use."""
    target = target_of(address)
    if tls is None:
        return grpc.aio.insecure_channel(target, options=OPTIONS)
    return grpc.aio.secure_channel(target, tls.credentials(), options=OPTIONS)
