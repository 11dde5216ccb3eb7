"""Builds the requests of every method, one module per noun. Nothing here is sent."""

from annals_client.requests import (
    agents,
    context,
    conversations,
    events,
    formats,
    health,
    index,
    keys,
    search,
    tenants,
)

__all__ = [
    "agents",
    "context",
    "conversations",
    "events",
    "formats",
    "health",
    "index",
    "keys",
    "search",
    "tenants",
]
