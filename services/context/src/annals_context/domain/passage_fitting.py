"""Chooses what is shown of hits so that it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from annals_common.errors import BudgetTooSmallError
from annals_context.domain.counting import Counter, available_for, margin_tokens
from annals_context.domain.events import Event
from annals_context.domain.model import CounterInfo, Hit
from annals_context.domain.passages import (
    Group,
    Passage,
    Place,
    grouped,
    heading,
    neighbour,
    passages_of,
    place_of,
    written,
)

HIT_SHARE_PERCENT = 70
"""Of the budget, what hits may use before the events beside them have had their turn."""
SHORT_TOKENS = 100
"""A passage up to this long is taken as it is; a longer one if it leaves half of the rest."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A text and what it is made of, in its order."""

    text: str
    total_tokens: int
    counter: CounterInfo
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageRequest:
    """Hits, the first ones first, and the events beside them, by place.

    `titles` are those of the conversations; None: there is but one, and it needs no heading.
    """

    hits: Sequence[Hit]
    query: str
    counter: Counter
    max_tokens: int
    neighbours: Mapping[Place, Sequence[Event]] = field(default_factory=dict)
    titles: Mapping[str, str] | None = None

    @property
    def usable_tokens(self) -> int:
        """What the text may take."""
        return self.max_tokens - margin_tokens(self.counter, self.max_tokens)


@dataclass(slots=True)
class _Page:
    """A budget being spent on passages. `remaining` is in tokens."""

    request: PassageRequest
    remaining: int
    placed: dict[Place, Passage] = field(default_factory=dict)
    _headed: set[str] = field(default_factory=set)

    def offer(self, passage: Passage, limit: int) -> bool:
        """Place a passage if it costs at most `limit`, and say so."""
        cost = self._cost(passage)
        if cost > min(limit, self.remaining):
            return False
        self.placed[passage.place] = passage
        self._headed.add(passage.event.conversation_id)
        self.remaining -= cost
        return True

    def offer_hit(self, hit: Hit, limit: int) -> None:
        """Place as much of a hit as fits."""
        if place_of(hit.event) in self.placed:
            return
        first, *shorter = passages_of(hit, self.request.query)
        if self.offer(first, min(limit, max(SHORT_TOKENS, self.remaining // 2))):
            return
        _ = any(self.offer(passage, limit) for passage in shorter)

    def _cost(self, passage: Passage) -> int:
        conversation_id, titles = passage.event.conversation_id, self.request.titles
        tokens = self.request.counter.count(f"{passage.line}\n")
        if titles is None or conversation_id in self._headed:
            return tokens
        return tokens + self.request.counter.count(f"\n{heading(conversation_id, titles)}\n")


def fit_passages(request: PassageRequest) -> Fitted:
    """Return what fits of the hits and of the events beside them; nothing without hits.

    Raises BudgetTooSmallError with the smallest budget that holds the shortest part of a hit.
    """
    page = _filled(request)
    chosen = list(page.placed.values())
    while chosen:
        fitted = _fitted(request, chosen)
        if fitted.total_tokens <= request.usable_tokens:
            return fitted
        chosen.pop()
    return _smallest(request) if request.hits else _fitted(request, ())


def _filled(request: PassageRequest) -> _Page:
    page = _Page(request, request.usable_tokens)
    kept_percent = 100 - HIT_SHARE_PERCENT if request.neighbours else 0
    kept_tokens = request.usable_tokens * kept_percent // 100
    _offer_hits(page, lambda: page.remaining - kept_tokens)
    scores = {place_of(hit.event): hit.score for hit in request.hits}
    for place in list(page.placed):
        for event in request.neighbours.get(place, ()):
            if place_of(event) not in page.placed:
                page.offer(neighbour(event, scores.get(place_of(event), 0.0)), page.remaining)
    _offer_hits(page, lambda: page.remaining)
    return page


def _offer_hits(page: _Page, limit: Callable[[], int]) -> None:
    for hit in page.request.hits:
        page.offer_hit(hit, limit())


def _smallest(request: PassageRequest) -> Fitted:
    shortest = (list(passages_of(hit, request.query))[-1] for hit in request.hits)
    smallest = min(
        (_fitted(request, [passage]) for passage in shortest), key=lambda one: one.total_tokens
    )
    if smallest.total_tokens > request.usable_tokens:
        raise BudgetTooSmallError(
            budget=request.max_tokens,
            minimum=available_for(request.counter, smallest.total_tokens),
            field="max_tokens",
        )
    return smallest


def _fitted(request: PassageRequest, passages: Iterable[Passage]) -> Fitted:
    groups, counter = grouped(passages), request.counter
    text = written(groups, request.titles)
    margin = margin_tokens(counter, request.max_tokens)
    info = CounterInfo(counter.encoding, counter.exact, margin)
    return Fitted(text, counter.count(text) if text else 0, info, tuple(groups))
