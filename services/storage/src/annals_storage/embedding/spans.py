"""Where a model's tokens lie in a text of any length."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tokenizers import Tokenizer

PIECE_CHARS = 16_384
"""Length from which a text is tokenised in pieces, side by side on all cores."""

_BLANK = re.compile(r"\s")


def token_spans(tokenizer: Tokenizer, text: str) -> list[tuple[int, int]]:
    """Return the (start, end) character offsets of tokens, special tokens left out.

    Pieces end at white space, where words end too. A text without any is one piece.
    `tokenizer` must neither pad nor truncate.
    """
    starts = [0, *_cuts(text)]
    pieces = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    encodings = tokenizer.encode_batch(pieces, add_special_tokens=False)
    return [
        (offset + start, offset + end)
        for offset, encoding in zip(starts, encodings, strict=True)
        for start, end in encoding.offsets
    ]


def _cuts(text: str) -> Iterator[int]:
    cut = _next_cut(text, 0)
    while cut is not None:
        yield cut
        cut = _next_cut(text, cut)


def _next_cut(text: str, after: int) -> int | None:
    found = _BLANK.search(text, after + PIECE_CHARS)
    return found.start() if found else None
