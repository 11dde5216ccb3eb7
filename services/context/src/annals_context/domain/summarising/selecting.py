"""Chooses the sentences that together say most of what is said, in few tokens.

A sentence gains the weight of its words that no chosen one has yet, so that what repeats another
gains nothing. A word weighs the root of how many sentences have it. Gains only shrink while
others are chosen, which is why the best of yesterday's is looked at first.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from annals_context.domain.snippets import words
from annals_context.domain.summarising.pieces import Piece

STEM_CHARS = 6
"""Words that begin alike count as one: painted, painting."""
QUESTION_FACTOR = 0.7
"""A question says less than its answer."""
FOCUS_FACTOR = 4.0
"""How much more the words of a focus weigh."""
LINE_TOKENS = 2
"""A guess at what a speaker's colon and the line's end take."""
_QUESTION_MARKS = ("?", "？")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a summary may be."""

    max_tokens: int
    max_pieces: int


class Weights:
    """What the words of some pieces weigh."""

    def __init__(self, pieces: Sequence[Piece], focus: str = "") -> None:
        self.terms = [terms_of(piece.text) for piece in pieces]
        self.counts = Counter(term for terms in self.terms for term in terms)
        focused = frozenset(terms_of(focus))
        self._by_term = {
            term: sqrt(count) * (FOCUS_FACTOR if term in focused else 1.0)
            for term, count in self.counts.items()
        }

    def gain(self, index: int, covered: set[str]) -> float:
        """Return what a piece adds to what is covered already."""
        return sum(self._by_term[term] for term in self.terms[index] if term not in covered)


def terms_of(text: str) -> tuple[str, ...]:
    """Return the distinct terms of a text in the order they come, function words left out."""
    said = (word for word in words(text) if word not in ENGLISH_STOP_WORDS)
    return tuple(dict.fromkeys(word[:STEM_CHARS] for word in said))


def select(
    pieces: Sequence[Piece], limits: Limits, count: Callable[[str], int], *, focus: str = ""
) -> list[int]:
    """Return the places of the chosen pieces, best first.

    Their tokens are estimated to fit: the text they make has to be counted.
    """
    costs = [count(piece.text) for piece in pieces]
    chosen: list[int] = []
    left, lines = limits.max_tokens, set[int]()
    for index in _by_gain(pieces, costs, Weights(pieces, focus), chosen):
        seq = pieces[index].seq
        cost = costs[index] + (0 if seq in lines else LINE_TOKENS)
        if cost > left and chosen:
            continue
        chosen.append(index)
        lines.add(seq)
        left -= cost
        if len(chosen) >= limits.max_pieces:
            break
    # Greetings alone have no words that weigh anything.
    return chosen or list(range(len(pieces)))[:1]


def _by_gain(
    pieces: Sequence[Piece], costs: Sequence[int], weights: Weights, chosen: Sequence[int]
) -> Iterator[int]:
    """Yield every piece that adds something, once; what was chosen is looked at in between."""
    covered: set[str] = set()

    def gain(index: int) -> float:
        is_question = pieces[index].text.endswith(_QUESTION_MARKS)
        factor = QUESTION_FACTOR if is_question else 1.0
        return weights.gain(index, covered) * factor / sqrt(max(1, costs[index]))

    queue = [(-gain(index), index) for index in range(len(pieces))]
    heapq.heapify(queue)
    while queue:
        _, index = heapq.heappop(queue)
        now = (-gain(index), index)
        if not now[0]:
            continue
        if queue and now > queue[0]:
            heapq.heappush(queue, now)
            continue
        yield index
        if chosen and chosen[-1] == index:
            covered.update(weights.terms[index])
