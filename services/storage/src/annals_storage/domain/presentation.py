"""Cuts a long text into the chunks it is shown by."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from annals_storage.domain.chunking import joints

Count = Callable[[str], int]
"""Returns the tokens of a text."""


@dataclass(frozen=True, slots=True)
class PresentationChunk:
    """Characters [start, end) of a text, which hold `token_count` tokens."""

    start: int
    end: int
    token_count: int


def presentation_chunks(
    text: str,
    token_starts: Sequence[int],
    count: Count,
    *,
    chunk_tokens: int,
    overlap_tokens: int,
) -> list[PresentationChunk]:
    """Return chunks that cover `text`, of at most `chunk_tokens` tokens each.

    `token_starts`: for each token of the text the character it begins in. A chunk ends behind a
    paragraph, a line, a sentence or a word where one ends in its second half, and begins about
    `overlap_tokens` tokens before the end of the one before, never inside a character. Without
    text there is no chunk.
    Raises ValueError unless 0 <= 2 * overlap_tokens < chunk_tokens.
    """
    if not 0 <= 2 * overlap_tokens < chunk_tokens:
        raise ValueError("overlap_tokens must be less than half of chunk_tokens")
    return list(_Cutter(text, token_starts, count, chunk_tokens, overlap_tokens).chunks())


class _Cutter:
    def __init__(
        self,
        text: str,
        token_starts: Sequence[int],
        count: Count,
        chunk_tokens: int,
        overlap_tokens: int,
    ) -> None:
        self._text, self._starts, self._count = text, token_starts, count
        self._chunk_tokens, self._overlap_tokens = chunk_tokens, overlap_tokens

    def chunks(self) -> Iterator[PresentationChunk]:
        start = covered = 0
        while covered < len(self._text):
            chunk = self._chunk(start)
            if chunk.end <= covered:
                # The overlap leaves no room for anything new.
                chunk = self._chunk(covered)
            yield chunk
            covered = chunk.end
            start = self._overlap_start(chunk)

    def _chunk(self, start: int) -> PresentationChunk:
        """Return the chunk that begins at a character.

        A text cut out may have more tokens than it had in its place: then less is taken.
        """
        wanted = self._chunk_tokens
        while True:
            end = self._end(start, wanted)
            tokens = self._count(self._text[start:end])
            if tokens <= self._chunk_tokens or wanted == 1:
                return PresentationChunk(start, end, tokens)
            wanted = max(1, wanted - (tokens - self._chunk_tokens))

    def _end(self, start: int, tokens: int) -> int:
        """Return where a chunk of at most about this many tokens ends best."""
        first = bisect_left(self._starts, start)
        if len(self._starts) - first <= tokens:
            return len(self._text)
        highest = self._starts[first + tokens]
        lowest = self._starts[first + tokens // 2]
        best = next(joints(self._text, lowest, highest), highest)
        return max(best, start + 1)

    def _overlap_start(self, chunk: PresentationChunk) -> int:
        """Return where the next chunk begins: at a word, where there is one."""
        if self._overlap_tokens == 0:
            return chunk.end
        following = bisect_left(self._starts, chunk.end)
        earliest = self._starts[max(0, following - self._overlap_tokens)]
        if earliest <= chunk.start:
            return chunk.end
        begins = (at for at in range(earliest, chunk.end) if self._text[at - 1].isspace())
        return next(begins, earliest)
