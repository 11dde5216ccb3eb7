"""One event a row: RFC 4180, made for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from annals_storage.domain.events import Event
from annals_storage.domain.export_formats import Values
from annals_storage.domain.transfer import event_values

BYTE_ORDER_MARK = "\ufeff"
"""By it, spreadsheets know UTF-8."""
COLUMNS = (
    "seq", "event_id", "branch", "event_time", "type", "role", "author_name", "content",
    "tool_call_id", "tool_name", "tool_input", "tool_result", "is_error", "error_type",
    "error_message", "model", "provider_response_id", "input_tokens", "output_tokens",
    "cached_input_tokens", "token_count", "parent_event_id", "turn_id", "status", "version",
    "created_at", "edited_at", "metadata",
)  # fmt: skip
_FORMULA = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""First characters after which spreadsheets calculate, full-width ones among them."""


class CsvWriter:
    """A header row, then the events; memories have no place in it."""

    def begin(self, conversation: Values, branch: int) -> str:  # noqa: ARG002 - a Writer
        """Return the header row."""
        return BYTE_ORDER_MARK + _row(COLUMNS)

    def event(self, event: Event) -> str:
        """Return a row."""
        values = event_values(event)
        values |= values.pop("usage", {})
        if "metadata" in values:
            values["metadata"] = json.dumps(values["metadata"], ensure_ascii=False, sort_keys=True)
        return _row(tuple(_cell(values.get(name, "")) for name in COLUMNS))

    def memory(self, memory: Values) -> str:  # noqa: ARG002 - a Writer
        """Return nothing."""
        return ""

    def end(self) -> str:
        """Return nothing."""
        return ""


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return f"'{text}" if text[:1] in _FORMULA else text


def _row(cells: tuple[str, ...]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue()
