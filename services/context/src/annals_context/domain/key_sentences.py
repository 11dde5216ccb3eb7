"""The sentences of a text that are most like the whole of it, told by its words alone.

A sentence is a vector of its words. The whole is one of what its sentences share: each word weighs
as much as there are other sentences that say it, and less the more of all do, as with articles.
This holds in any language, and nothing but the text itself decides: its snippet stays the same
whatever else is in the conversation.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from annals_context.domain.snippets import ELLIPSIS, sentences, snippet, words

MAX_SCANNED_CHARS = 20_000
"""Of a longer text the beginning decides."""
UNSHARED_WEIGHT = 0.1
"""Of a word that one sentence alone says."""
_MIN_WORDS = 3
"""A shorter sentence ("Yes, please.") is hardly the core of anything."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A part of a text and its likeness to the whole, between 0 and 1."""

    start: int
    end: int
    likeness: float


def core_start(text: str, start: int = 0, end: int | None = None) -> int:
    """Return where the sentence of `text[start:end]` that is most like that part begins."""
    found = _scored(text, start, _scan_end(text, start, end))
    return max(found, key=lambda one: (one.likeness, -one.start)).start if found else start


def condensed(text: str, *, max_chars: int) -> str:
    """Return the sentences most like the whole, in their order, in about `max_chars` characters.

    What was left out between two of them is marked by an ellipsis, which counts. When none is
    short enough it is the beginning of the best.
    """
    found = _scored(text, 0, _scan_end(text, 0, None))
    chosen = _chosen(found, max_chars)
    if not chosen:
        begin = core_start(text)
        return snippet(text, max_chars=max(1, max_chars - 2 * len(ELLIPSIS)), start=begin)
    parts: list[str] = []
    previous = -1
    for index in chosen:
        gap = [ELLIPSIS] if index != previous + 1 else []
        sentence = found[index]
        parts += [*gap, " ".join(text[sentence.start : sentence.end].split())]
        previous = index
    tail = [ELLIPSIS] if chosen[-1] + 1 < len(found) or len(text) > MAX_SCANNED_CHARS else []
    return " ".join([*parts, *tail])


def _chosen(found: list[Sentence], max_chars: int) -> list[int]:
    """Return indexes of sentences that fit together, each with room for a mark, in order."""
    left = max_chars - 2 * len(ELLIPSIS)
    chosen: list[int] = []
    for index in sorted(range(len(found)), key=lambda one: -found[one].likeness):
        chars = found[index].end - found[index].start + 2 * len(ELLIPSIS) + 1
        if chars <= left:
            chosen.append(index)
            left -= chars
    return sorted(chosen)


def _scan_end(text: str, start: int, end: int | None) -> int:
    return min(len(text) if end is None else end, start + MAX_SCANNED_CHARS)


def _scored(text: str, start: int, end: int) -> list[Sentence]:
    spans = list(sentences(text, start, end))
    counted = [Counter(words(text[begin:stop])) for begin, stop in spans]
    weights = _weights(counted)
    norm = math.hypot(*weights.values()) if weights else 0.0
    return [
        Sentence(begin, stop, _likeness(own, weights, norm))
        for (begin, stop), own in zip(spans, counted, strict=True)
    ]


def _weights(counted: list[Counter[str]]) -> dict[str, float]:
    """Return the weight of each word in the whole."""
    saying = Counter(word for own in counted for word in own)
    return {
        word: (n - 1 + UNSHARED_WEIGHT) * math.log((1 + len(counted)) / n)
        for word, n in saying.items()
    }


def _likeness(own: Counter[str], weights: dict[str, float], norm: float) -> float:
    length = math.hypot(*own.values()) if own else 0.0
    if not length or not norm:
        return 0.0
    product = sum(n * weights[word] for word, n in own.items())
    is_short = sum(own.values()) < _MIN_WORDS
    return product / (length * norm) * (0.5 if is_short else 1.0)
