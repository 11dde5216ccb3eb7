"""Tells the language of a text in Latin letters by its most frequent words.

Deterministic and small: sure of sentences, mostly not of two nouns. Then it says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from annals_common.function_words import LETTERS, STRONG, WEAK

LATIN = tuple(STRONG)
"""Codes of the languages that are told apart."""
EXAMINED_CHARS = 1_000
"""Hardly a text changes its language after so many; also what keeps sums below _MASK."""
STRONG_POINTS, WEAK_POINTS = 2, 1
SURE_POINTS = 2
_BITS = 11
_MASK = (1 << _BITS) - 1
_WORD = re.compile(r"\w+")


def _points() -> Iterator[tuple[str, int]]:
    for number, code in enumerate(LATIN):
        strong_letters, weak_letters = LETTERS.get(code, ("", ""))
        strong = {*STRONG[code].split(), *strong_letters}
        weak = {*WEAK.get(code, "").split(), *weak_letters} - strong
        for part in sorted(strong):
            yield part, STRONG_POINTS << (_BITS * number)
        for part in sorted(weak):
            yield part, WEAK_POINTS << (_BITS * number)


def _table() -> dict[str, int]:
    """Return what a word or letter adds to the sums, all of them packed into one number."""
    table: dict[str, int] = {}
    for part, points in _points():
        table[part] = table.get(part, 0) + points
    return table


_TABLE = _table()
_LETTERS = {part: points for part, points in _TABLE.items() if not part.isascii()}


def likely_languages(text: str) -> tuple[str, ...]:
    """Return the codes of the languages a text is likely in: one, several alike, or none."""
    lowered = text[:EXAMINED_CHARS].lower()
    total = sum([_TABLE[word] for word in _WORD.findall(lowered) if word in _TABLE])
    if not lowered.isascii():
        total += sum([_LETTERS.get(letter, 0) for letter in set(lowered)])
    if not total:
        return ()
    sums = [total >> (_BITS * number) & _MASK for number in range(len(LATIN))]
    most = max(sums)
    if most < SURE_POINTS:
        return ()
    return tuple(code for code, points in zip(LATIN, sums, strict=True) if points == most)
