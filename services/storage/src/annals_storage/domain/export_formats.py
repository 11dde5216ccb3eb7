"""Formats of exports for people and programs; JSON Lines, which loses nothing, is in `transfer`.

A writer returns text piece by piece. It is given the conversation, then the events of one branch
in order, those deleted or erased left out, then the memories.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

from annals_storage.domain.events import Event


class ExportFormat(StrEnum):
    """What a file is."""

    JSON = "json"
    JSON_LINES = "json_lines"
    MARKDOWN = "markdown"
    CSV = "csv"


FILE_TYPES = {
    ExportFormat.JSON: ("json", "application/json"),
    ExportFormat.JSON_LINES: ("jsonl", "application/jsonl"),
    ExportFormat.MARKDOWN: ("md", "text/markdown; charset=utf-8"),
    ExportFormat.CSV: ("csv", "text/csv; charset=utf-8; header=present"),
}
"""Suffix and media type."""

Values = Mapping[str, Any]
"""Members of a line, as `annals_storage.domain.transfer` has them."""


class Writer(Protocol):
    """Writes one file."""

    def begin(self, conversation: Values, branch: int) -> str:
        """Return what comes before the events."""

    def event(self, event: Event) -> str:
        """Return an event."""

    def memory(self, memory: Values) -> str:
        """Return a memory."""

    def end(self) -> str:
        """Return what comes last."""
