"""How lists are paged."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

PageCursor = tuple[datetime, UUID] | None
"""(created_at, id) of the last row of the previous page; None for the first page."""
