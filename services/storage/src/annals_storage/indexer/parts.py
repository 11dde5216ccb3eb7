"""What of a claim is mirrored at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from uuid import UUID

from annals_storage.domain.indexing import OutboxEntry

MAX_PART_BYTES = 4 * 1024 * 1024
"""Of text in memory at a time, unless a single event has more."""


def by_lane_and_tenant(entries: Sequence[OutboxEntry]) -> list[list[OutboxEntry]]:
    """Return the entries that may be mirrored together: what somebody waits for first."""
    ordered = sorted(entries, key=lambda entry: (entry.priority, entry.tenant_id, entry.key))
    lanes = groupby(ordered, key=lambda entry: (entry.priority, entry.tenant_id))
    return [list(own) for _, own in lanes]


def cut_by_bytes(
    entries: Sequence[OutboxEntry],
    text_bytes: Mapping[UUID, int],
    *,
    max_bytes: int = MAX_PART_BYTES,
) -> Iterator[list[OutboxEntry]]:
    """Yield the entries in parts whose texts together have at most `max_bytes`; one at least."""
    part: list[OutboxEntry] = []
    total_bytes = 0
    for entry in entries:
        more_bytes = text_bytes.get(entry.key, 0)
        if part and total_bytes + more_bytes > max_bytes:
            yield part
            part, total_bytes = [], 0
        part.append(entry)
        total_bytes += more_bytes
    if part:
        yield part
