"""Short pieces of long texts, cut where a reader would accept it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import regex  # type: ignore[import-untyped]

ELLIPSIS = "…"
_GRAPHEME = regex.compile(r"\X")
_LAST_ASCII = regex.compile(r"(?r)[\x00-\x7f]")
# A full stop ends a sentence only before white space: not in 2.5.
_SENTENCE = regex.compile(r"\S(?:[^.!?。！？\n]|[.!?](?!\s|$))*[.!?。！？]*")
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}"
_WORD = regex.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]{{3,}}")
_WORD_LOOKBACK_CHARS = 40
_SCAN_FACTOR = 4
_SCAN_SLACK_CHARS = 64


def snippet(text: str, *, max_chars: int, start: int = 0) -> str:
    """Return up to `max_chars` characters of `text` from about `start`, on one line.

    White space is collapsed and grapheme clusters stay whole, unless the first alone is longer
    than the snippet. An ellipsis, which is not counted, marks each side that was cut.
    """
    begin = _word_start(text, start)
    scanned = text[begin : begin + max_chars * _SCAN_FACTOR + _SCAN_SLACK_CHARS]
    line = " ".join(scanned.split())
    cut = cut_to_graphemes(line, max_chars)
    is_whole = len(cut) == len(line) and begin + len(scanned) >= len(text)
    return f"{ELLIPSIS if begin else ''}{cut}{'' if is_whole else ELLIPSIS}"


def best_sentence(text: str, start: int, end: int, query: str) -> int:
    """Return where the sentence of `text[start:end]` that shares most words with `query` begins.

    Sentences that share equally many count by their place; without a shared word it is `start`.
    """
    spans = list(sentences(text, start, end))
    if len(spans) == 1 and spans[0][0] == start:
        return start
    wanted = _words_of_query(query)
    best, most = start, 0
    for begin, stop in spans:
        shared = len(wanted.intersection(words(text[begin:stop])))
        if shared > most:
            best, most = begin, shared
    return best


@lru_cache(maxsize=8)
def _words_of_query(query: str) -> frozenset[str]:
    """Return the words all hits of a search are compared with."""
    return frozenset(words(query))


def sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return where the sentences of `text[start:end]` begin and end."""
    for sentence in _SENTENCE.finditer(text, start, max(start, end)):
        yield sentence.span()


def words(text: str) -> list[str]:
    """Return the words of a text that say something, by their length, in small letters."""
    return [word.casefold() for word in _WORD.findall(text)]


def cut_to_graphemes(text: str, max_chars: int) -> str:
    """Return the longest beginning of whole grapheme clusters within `max_chars` characters."""
    if len(text) <= max_chars:
        return text
    # A cluster begins at every ASCII character, so none before the last one can be cut.
    ascii_before = _LAST_ASCII.search(text, 0, max_chars)
    end = ascii_before.start() if ascii_before else 0
    for cluster in _GRAPHEME.finditer(text, end, max_chars + _SCAN_SLACK_CHARS):
        if cluster.end() > max_chars:
            break
        end = cluster.end()
    return text[: end or max_chars].rstrip()


def _word_start(text: str, start: int) -> int:
    """Step back from `start` to the beginning of its word, at most a few characters."""
    if start <= 0 or start >= len(text):
        return 0
    lowest = max(0, start - _WORD_LOOKBACK_CHARS)
    space = max(text.rfind(" ", lowest, start), text.rfind("\n", lowest, start))
    return space + 1 if space >= 0 else lowest if lowest == 0 else start
