"""Raw requests to model providers and their responses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

DEFAULT_LOG_DAYS = 30
"""How long a log is kept unless a retention policy says otherwise."""


@dataclass(frozen=True, slots=True)
class NewProviderLog:
    """A validated log on its way into the store. Both texts are JSON, or empty."""

    provider_log_id: UUID
    conversation_id: UUID
    provider: str
    model: str
    request_json: str
    response_json: str
    latency_ms: int


@dataclass(frozen=True, slots=True)
class ProviderLog:
    """A stored log."""

    provider_log_id: UUID
    conversation_id: UUID
    provider: str
    model: str
    request_json: str
    response_json: str
    latency_ms: int
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ProviderLogPage:
    """Logs, newest first, and whether more follow."""

    logs: tuple[ProviderLog, ...]
    has_more: bool
