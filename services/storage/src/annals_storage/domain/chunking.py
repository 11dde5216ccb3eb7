"""Cuts a text into chunks that fit an embedding model, along its own joints."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from annals_storage.domain.structure import Seams, find_seams

DEFAULT_MAX_TOKENS = 254
"""The window of the default model, 256, less its two special tokens."""

DEFAULT_OVERLAP_TOKENS = 32

_JOINTS = (
    re.compile(r"\n\s*\n\s*"),  # paragraph
    re.compile(r"\n\s*"),  # line
    re.compile(r"""[.!?…]['")\]»”’]{0,3}\s+|[。！？]\s*"""),  # sentence
    re.compile(r"\s+"),  # word
)
"""A cut falls behind a match; earlier patterns are preferred."""

_ESCAPED_LINE = re.compile(r"(?<!\\)(?=\\n)")
"""A line's end inside a string of JSON. The cut is before it: a tokenizer joins the n to the
word behind it."""
_SENTENCE, _WORD = _JOINTS[2], _JOINTS[3]

_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2FA1F),
)


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """A stretch of the source: characters [start, end), holding `token_count` tokens."""

    start: int
    end: int
    token_count: int


def chunk_spans(
    text: str,
    token_spans: Sequence[tuple[int, int]],
    *,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    overlap_tokens: int = DEFAULT_OVERLAP_TOKENS,
    max_chunks: int | None = None,
    words_start: int = 0,
) -> list[ChunkSpan]:
    """Return the chunks of `text` in order; together they cover it but for its outer blanks.

    `token_spans` are the character offsets of the model's tokens in order, special tokens
    left out. A chunk has at most `max_tokens` of them and, unless it is the last, at least
    half as many. It ends where the text comes apart best (domain/structure, which looks at it
    from `words_start` on): between elements, records, paragraphs, lines; else at a sentence,
    which code has none of, a word, between characters that are words of their own, and only
    then inside a word. The next one starts at most `overlap_tokens` before: with a whole record
    or line of code, or at a word of prose. A text without tokens has no chunks. Of `max_chunks`
    the last may leave a rest of the text. Takes time linear in the text.
    Raises `ValueError` unless 0 ≤ overlap_tokens ≤ max_tokens / 2 and max_tokens ≥ 1.
    """
    if max_tokens < 1 or not 0 <= overlap_tokens <= max_tokens // 2:
        raise ValueError(
            f"overlap_tokens {overlap_tokens} must be at least 0 and at most half of "
            f"max_tokens {max_tokens}, which must be at least 1"
        )
    if not token_spans:
        return []
    chunker = _Chunker(text, token_spans, max_tokens, overlap_tokens)
    if len(token_spans) > max_tokens:
        chunker.seams = find_seams(text, words_start)
    return list(islice(chunker.chunks(), max_chunks))


class _Chunker:
    def __init__(
        self, text: str, spans: Sequence[tuple[int, int]], max_tokens: int, overlap_tokens: int
    ) -> None:
        self._text = text
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]
        self._max_tokens = max_tokens
        self._overlap_tokens = overlap_tokens
        self.seams = Seams()

    def chunks(self) -> Iterator[ChunkSpan]:
        first, start = 0, len(self._text) - len(self._text.lstrip())
        while len(self._starts) - first > self._max_tokens:
            cut, following = self._cut(first)
            yield ChunkSpan(start, cut, following - first)
            first = self._overlap_start(first, following, cut)
            start = min(cut, self._starts[first])
        yield ChunkSpan(start, len(self._text.rstrip()), len(self._starts) - first)

    def _cut(self, first: int) -> tuple[int, int]:
        """Return where the chunk that starts at token `first` ends, and the token after it."""
        lowest = self._starts[first + self._max_tokens // 2]
        highest = self._starts[first + self._max_tokens]
        for cut in self._candidates(lowest, highest):
            following = bisect_left(self._starts, cut, lo=first)
            if self._ends[following - 1] <= cut:
                return cut, following
        return highest, first + self._max_tokens

    def _candidates(self, lowest: int, highest: int) -> Iterator[int]:
        """Yield cuts in (lowest, highest], best first."""
        yield from self.seams.within(lowest, highest)
        if self.seams.of_records:
            yield from _last_end(_ESCAPED_LINE, self._text, lowest, highest)
        if not self.seams.is_code(lowest):
            yield from _last_end(_SENTENCE, self._text, lowest, highest)
        yield from _last_end(_WORD, self._text, lowest, highest)
        yield from _last_word_start(self._text, lowest, highest)

    def _overlap_start(self, first: int, following: int, cut: int) -> int:
        """Return the token at which the next chunk starts: of a unit or word, if there is one."""
        earliest = max(first + 1, following - self._overlap_tokens)
        if self.seams.ends_unit(cut):
            seam = self.seams.repeatable(self._starts[earliest], cut)
            return following if seam is None else bisect_left(self._starts, seam, lo=earliest)
        for token in range(earliest, following):
            if _is_word_start(self._text, self._starts[token]):
                return token
        return following


def joints(text: str, lowest: int, highest: int) -> Iterator[int]:
    """Yield cuts in (lowest, highest], best first: the last of each kind.

    Kinds are ends of paragraphs, lines, sentences and words, then of characters that are words.
    """
    for pattern in _JOINTS:
        yield from _last_end(pattern, text, lowest, highest)
    yield from _last_word_start(text, lowest, highest)


def _last_end(pattern: re.Pattern[str], text: str, lowest: int, highest: int) -> Iterator[int]:
    ends = [match.end() for match in pattern.finditer(text, lowest, highest)]
    if ends and ends[-1] > lowest:
        yield ends[-1]


def _last_word_start(text: str, lowest: int, highest: int) -> Iterator[int]:
    cuts = (cut for cut in range(highest, lowest, -1) if _is_word_start(text, cut))
    yield from islice(cuts, 1)


def _is_word_start(text: str, position: int) -> bool:
    return any(_stands_alone(char) for char in text[position - 1 : position + 1])


def _stands_alone(char: str) -> bool:
    """Tell whether tokenizers split words before and after this character."""
    if char.isspace() or unicodedata.category(char).startswith("P"):
        return True
    if char.isascii():
        return not char.isalnum()
    return any(low <= ord(char) <= high for low, high in _IDEOGRAPHS)
