"""Notices conversations that grow large."""

from __future__ import annotations

from prometheus_client import Counter

from annals_storage.domain.appending import AppendResult

LARGE_CONVERSATIONS = Counter(
    "annals_storage_large_conversations_total",
    "Conversations that an append made reach the size called large.",
)


class GrowthAlert:
    """Counts each conversation once: when the event at position `large_events` is stored."""

    def __init__(self, *, large_events: int) -> None:
        self._large_events = large_events

    def note(self, result: AppendResult) -> None:
        """Look at what an append stored; a replay stores nothing."""
        if result.last_seq < self._large_events:
            return
        for event in result.events:
            if event.seq == self._large_events and not event.replayed:
                LARGE_CONVERSATIONS.inc()
