"""Contexts that are kept for a while."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much is kept, and for how long. `body_bytes` 0: nothing is kept."""

    ttl_seconds: float
    body_bytes: int
    tenant_bytes: int


@dataclass(frozen=True, slots=True)
class WantedContext:
    """What is asked for. `held_state`: of a context the caller has; empty: of none."""

    conversation_id: UUID
    request_digest: bytes
    held_state: bytes = b""
    previous_version: str = ""


@dataclass(frozen=True, slots=True)
class FoundContext:
    """The present state, empty while it is not settled, and what is kept in it."""

    state: bytes
    conversation_version: int
    body: bytes = b""
    previous_body: bytes = b""


@dataclass(frozen=True, slots=True)
class NewContext:
    """A context to keep, and the state it was assembled in."""

    conversation_id: UUID
    request_digest: bytes
    state: bytes
    context_version: str
    body: bytes
