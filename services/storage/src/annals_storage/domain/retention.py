"""What becomes of conversations as they age."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

TENANT_POLICY = UUID(int=0)
"""The agent id under which the tenant's own policy is kept."""
MAX_DAYS = 36_500
MAX_PROVIDER_LOG_DAYS = 365
DEFAULT_SEARCH_LOG_DAYS = 90


class MaintenanceDue(StrEnum):
    """What a conversation may be due for."""

    ARCHIVE = "archive"
    COLD = "cold"
    ERASE = "erase"


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Days after which something happens; None: never, or the tenant's, or the default."""

    agent_id: UUID | None = None
    archive_after_days: int | None = None
    cold_after_days: int | None = None
    erase_after_days: int | None = None
    erase_deleted_after_days: int | None = None
    provider_log_days: int | None = None
    search_log_days: int | None = None
    updated_at: datetime | None = None
