"""Where the tokens of a payload went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from annals_context.domain.events import Event
from annals_context.domain.formats.lines import retrieval
from annals_context.domain.model import ContextItem, DetailLevel, LedgerEntry, Section


@dataclass(frozen=True, slots=True)
class Ledger:
    """Items and sections; the sections add up to the total exactly.

    `excess_tokens`: by how much the items were priced above the total.
    """

    items: tuple[ContextItem, ...]
    entries: tuple[LedgerEntry, ...]
    excess_tokens: int


def make_ledger(items: Sequence[ContextItem], total_tokens: int) -> Ledger:
    """Charge what no item accounts for to the framing; the total has the last word.

    Should the items alone exceed the total, because joined pieces took fewer tokens, each of them
    is charged less by its size.
    """
    charged = _within(list(items), total_tokens)
    framing = total_tokens - sum(item.tokens for item in charged)
    sections = dict.fromkeys(item.section for item in sorted(charged, key=_section_order))
    entries = [_entry(section, charged) for section in sections]
    excess = sum(item.tokens for item in items) - total_tokens
    return Ledger(tuple(charged), (*entries, LedgerEntry(Section.FRAMING, framing)), max(0, excess))


def event_item(
    event: Event, section: Section, detail: DetailLevel, *, tokens: int, score: float = 0.0
) -> ContextItem:
    """Return the item of a stored event."""
    return ContextItem(
        event_id=event.event_id,
        seq=event.seq,
        section=section,
        detail=detail,
        tokens=tokens,
        score=score,
        handle=event.handle,
        retrieve_with=retrieval(event.handle),
    )


def apportion(tokens: int, weights: Sequence[int]) -> list[int]:
    """Split `tokens` into whole parts by weight; the first takes what rounding leaves."""
    whole = sum(weights)
    if not whole:
        return []
    parts = [tokens * weight // whole for weight in weights]
    parts[0] += tokens - sum(parts)
    return parts


def _within(items: list[ContextItem], total_tokens: int) -> list[ContextItem]:
    charged = sum(item.tokens for item in items)
    excess = charged - total_tokens
    if excess <= 0:
        return items
    parts = [item.tokens - item.tokens * excess // charged for item in items]
    # Rounding leaves less than one token for each item that has any.
    by_size = sorted(range(len(parts)), key=lambda index: -parts[index])
    for index in by_size[: sum(parts) - total_tokens]:
        parts[index] -= 1
    return [replace(item, tokens=tokens) for item, tokens in zip(items, parts, strict=True)]


def _entry(section: Section, items: Iterable[ContextItem]) -> LedgerEntry:
    own = [item for item in items if item.section is section]
    counts = [sum(item.detail is detail for item in own) for detail in DetailLevel]
    return LedgerEntry(section, sum(item.tokens for item in own), *counts)


def _section_order(item: ContextItem) -> int:
    return list(Section).index(item.section)
