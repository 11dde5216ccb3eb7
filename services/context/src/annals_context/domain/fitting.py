"""Fills a budget: what must be there first, then the rest by its order and share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from annals_context.domain.formats.layout import Piece
from annals_context.domain.model import DetailLevel
from annals_context.domain.planning import Candidate, Plan
from annals_context.domain.pricing import Pricing
from annals_context.domain.strategies import Strategy

ALL_DETAILS = (DetailLevel.FULL, DetailLevel.SNIPPET, DetailLevel.STUB)
DEGRADED = (DetailLevel.SNIPPET, DetailLevel.STUB)
SHORT_TOKENS = 100
"""A relevant item up to this long is shown in full as soon as it fits."""
_MAX_MISSES = 16
"""Index candidates that may fail to fit in a row before the rest is left out."""


@dataclass(frozen=True, slots=True)
class CurrentMessage:
    """What the user says now, as it is shown."""

    piece: Piece
    detail: DetailLevel


@dataclass(frozen=True, slots=True)
class Selection:
    """What goes into a payload, unordered."""

    placed: tuple[tuple[Candidate, DetailLevel], ...] = ()
    current: CurrentMessage | None = None


@dataclass(slots=True)
class Filling:
    """A budget being spent on candidates. `remaining` is in tokens."""

    pricing: Pricing
    strategy: Strategy
    remaining: int
    snippet_chars: int
    _placed: dict[int, tuple[Candidate, DetailLevel]] = field(default_factory=dict)
    _opened: set[object] = field(default_factory=set)

    def expand(self, candidates: Iterable[Candidate], kept_free: int) -> bool:
        """Place what a reader asked for in full, leaving `kept_free` tokens to what must be there
        beside it; False when something that is required does not fit.
        """
        for candidate in candidates:
            is_placed = self.offer(candidate, ALL_DETAILS[:1], self.remaining - kept_free)
            if candidate.is_required and not is_placed:
                return False
        return True

    def least_tokens(self, candidate: Candidate) -> int:
        """Return what a candidate costs as a snippet or a stub, whichever is less."""
        costs = [self.pricing.tokens(candidate, one) for one in DEGRADED if candidate.allows(one)]
        return self._opening_tokens(candidate) + min(costs)

    def ensure(self, candidate: Candidate) -> bool:
        """Place a candidate at the first level that fits, unless it has its place; tell whether
        it is there.
        """
        return id(candidate) in self._placed or self.offer(candidate, ALL_DETAILS) > 0

    def fill(self, plan: Plan) -> None:
        """Place recent events in up to half, relevant ones, what is left over, the index."""
        self._offer_each(plan.recent, ALL_DETAILS, self.remaining // 2)
        for candidate in plan.relevant:
            self._offer_relevant(candidate)
        for candidate in (*plan.recent, *plan.relevant):
            self._offer_more(candidate)
        self._offer_index(plan.index)

    def offer(
        self, candidate: Candidate, details: Iterable[DetailLevel], limit: int | None = None
    ) -> int:
        """Place a candidate at the first level within `limit`; return what it cost, or 0."""
        bound = self.remaining if limit is None else min(limit, self.remaining)
        if bound <= 0 or id(candidate) in self._placed:
            return 0
        opening = self._opening_tokens(candidate)
        for detail in details:
            if candidate.allows(detail) and self.pricing.fits(candidate, detail, bound - opening):
                return self._place(candidate, detail, opening)
        return 0

    def placed(self) -> tuple[tuple[Candidate, DetailLevel], ...]:
        """Return what was placed, and how."""
        return tuple(self._placed.values())

    def _offer_each(
        self, candidates: Iterable[Candidate], details: Iterable[DetailLevel], share: int
    ) -> None:
        for candidate in candidates:
            share -= self.offer(candidate, details, share)

    def _offer_relevant(self, candidate: Candidate) -> None:
        """Show it in full when it is short or takes at most half of what is left."""
        if not self.offer(candidate, ALL_DETAILS[:1], max(SHORT_TOKENS, self.remaining // 2)):
            self.offer(candidate, DEGRADED)

    def _offer_more(self, candidate: Candidate) -> None:
        """Show a candidate in full after all, or at least at some level."""
        known = self._placed.get(id(candidate))
        if known is None:
            self.offer(candidate, ALL_DETAILS)
        elif known[1] is not DetailLevel.FULL and candidate.allows(DetailLevel.FULL):
            self._upgrade(candidate, self.pricing.tokens(*known))

    def _upgrade(self, candidate: Candidate, paid: int) -> None:
        if self.pricing.fits(candidate, DetailLevel.FULL, self.remaining + paid):
            self.remaining += paid
            self._place(candidate, DetailLevel.FULL, 0)

    def _offer_index(self, candidates: Iterable[Candidate]) -> None:
        misses = 0
        for candidate in candidates:
            misses = 0 if self.offer(candidate, self._index_details(candidate)) else misses + 1
            if misses > _MAX_MISSES:
                return

    def _index_details(self, candidate: Candidate) -> tuple[DetailLevel, ...]:
        """Show what is no longer than a snippet as it is."""
        details = self.strategy.index_details
        if all(len(event.body) <= self.snippet_chars for event in candidate.unit.events):
            return (DetailLevel.FULL, *details[-1:])
        return details

    def _place(self, candidate: Candidate, detail: DetailLevel, opening: int) -> int:
        cost = opening + self.pricing.tokens(candidate, detail)
        self._placed[id(candidate)] = (candidate, detail)
        self._opened.update(candidate.openings)
        self.remaining -= cost
        return cost

    def _opening_tokens(self, candidate: Candidate) -> int:
        """Return the cost of frames and dates that nobody opened yet."""
        tokens = 0
        for _, date in candidate.openings - self._opened:
            if date:
                tokens += self.pricing.date_tokens(date)
            else:
                tokens += self.pricing.frame_tokens(candidate, self.strategy.heading)
        return tokens
