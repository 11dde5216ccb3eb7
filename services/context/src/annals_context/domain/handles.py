"""Names of what a context holds. Nothing else writes or reads them.

`#41` is event 41 of the conversation in hand, `0199c7a2-…#41` that of another one; a summary's is
its id. Further kinds of items take a class and a pattern of their own here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SUMMARY = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
_EVENT = re.compile(r"(?P<conversation_id>[0-9a-f-]{36})?#(?P<seq>[1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True, slots=True)
class EventHandle:
    """Names an event by its position; without a conversation, of the one in hand."""

    seq: int
    conversation_id: str = ""

    def __str__(self) -> str:
        return f"{self.conversation_id}#{self.seq}"


@dataclass(frozen=True, slots=True)
class SummaryHandle:
    """Names a summary."""

    summary_id: str

    def __str__(self) -> str:
        return self.summary_id


Handle = EventHandle | SummaryHandle


def parse_handle(text: str) -> Handle | None:
    """Return what a handle names; None when it is none."""
    if _SUMMARY.fullmatch(text):
        return SummaryHandle(text)
    found = _EVENT.fullmatch(text)
    if found is None:
        return None
    return EventHandle(int(found["seq"]), found["conversation_id"] or "")
