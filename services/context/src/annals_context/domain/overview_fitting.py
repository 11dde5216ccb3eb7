"""Fits an overview into its share: first as many entries as fit, then more of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from annals_context.domain.model import DetailLevel
from annals_context.domain.overview import Entry, OverviewBlock
from annals_context.domain.pricing import Pricing


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """A heading and the entries below it, each at its level, in the order they are written."""

    heading: str
    entries: tuple[tuple[Entry, DetailLevel], ...]


@dataclass(slots=True)
class OverviewFilling:
    """Entries that got a place, and the `tokens` they take with their headings.

    What is placed stays, at its level or a richer one.
    """

    pricing: Pricing
    tokens: int = 0
    _levels: dict[int, DetailLevel] = field(default_factory=dict)
    _opened: set[str] = field(default_factory=set)

    def fill(self, blocks: Sequence[OverviewBlock], limit_tokens: int) -> int:
        """Place and enrich what fits into `limit_tokens` more; return what that takes."""
        left = limit_tokens
        for block in blocks:
            for entry in block.offered:
                left -= self._place(block, entry, left)
        for block in blocks:
            for entry in block.offered:
                left -= self._enrich(entry, left)
        self.tokens += limit_tokens - left
        return limit_tokens - left

    def shown(self, blocks: Sequence[OverviewBlock]) -> tuple[ShownBlock, ...]:
        """Return what is written, in its order."""
        return tuple(
            ShownBlock(
                block.heading,
                tuple(
                    (entry, self._levels[id(entry)])
                    for entry in block.entries
                    if id(entry) in self._levels
                ),
            )
            for block in blocks
            if block.heading in self._opened
        )

    def _place(self, block: OverviewBlock, entry: Entry, left: int) -> int:
        """Show an entry at its least level; return what it takes, or 0."""
        if id(entry) in self._levels:
            return 0
        least = tuple(entry.texts)[-1]
        tokens = self._tokens(entry, least)
        if block.heading not in self._opened:
            tokens += self.pricing.heading_tokens(block.heading)
        if tokens > left:
            return 0
        self._opened.add(block.heading)
        self._levels[id(entry)] = least
        return tokens

    def _enrich(self, entry: Entry, left: int) -> int:
        """Show more of an entry that has its place; return what that takes in addition."""
        level = self._levels.get(id(entry))
        if level is None:
            return 0
        paid = self._tokens(entry, level)
        for richer in entry.texts:
            if richer is level:
                return 0
            more = self._tokens(entry, richer) - paid
            if more <= left:
                self._levels[id(entry)] = richer
                return more
        return 0

    def _tokens(self, entry: Entry, level: DetailLevel) -> int:
        return self.pricing.paragraph_tokens(entry.texts[level])
