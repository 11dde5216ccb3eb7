"""Channels to our services: how they resolve, balance and stay alive."""

from __future__ import annotations

import json

import grpc
import grpc.aio

from annals_common.settings import MAX_RECEIVE_BYTES

KEEPALIVE_MS = 30_000
_SERVICE_CONFIG: dict[str, list[dict[str, dict[str, str]]]] = {
    "loadBalancingConfig": [{"round_robin": {}}]
}
CHANNEL_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    ("grpc.max_receive_message_length", MAX_RECEIVE_BYTES),
    ("grpc.max_send_message_length", MAX_RECEIVE_BYTES),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", 10_000),
    # gRPC waits up to two minutes between connection attempts; a restart takes seconds.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


def target_of(address: str) -> str:
    """Turn `host:port` into a target that follows every address behind the name."""
    return address if ":///" in address or address.startswith("unix:") else f"dns:///{address}"


def open_channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    """Open a channel for threads; in clear without credentials. Connects on first use."""
    if credentials is None:
        return grpc.insecure_channel(target_of(address), options=CHANNEL_OPTIONS)
    return grpc.secure_channel(target_of(address), credentials, options=CHANNEL_OPTIONS)


def open_aio_channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    """Open a channel for the running event loop; otherwise as `open_channel`."""
    if credentials is None:
        return grpc.aio.insecure_channel(target_of(address), options=CHANNEL_OPTIONS)
    return grpc.aio.secure_channel(target_of(address), credentials, options=CHANNEL_OPTIONS)
