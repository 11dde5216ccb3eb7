"""Sessions that became a user's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Merge:
    """Move the anonymous conversations of a session to a user. `agent_id`: only that agent's."""

    session_id: str
    user_id: str
    agent_id: UUID | None = None
    api_key_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did: `merged_at` is when the session was first merged."""

    moved_count: int
    merged_at: datetime
