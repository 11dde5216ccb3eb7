"""Real counters, and one whose sums lie."""

from __future__ import annotations

from functools import partial

from annals_common.tokenizers import encode_text, load_encoding
from annals_context.domain.counting import TokenCounter


def real_counter(encoding: str = "o200k_base", *, exact: bool = True) -> TokenCounter:
    return TokenCounter(encoding, exact, partial(encode_text, load_encoding(encoding)))


class LyingCounter:
    """Long texts cost more than the sum of their parts, as no real encoding does this much."""

    encoding = "lying"
    exact = True

    def count(self, text: str) -> int:
        length = len(text)
        return length // 4 + (length // 100) ** 2 + 1


O200K = real_counter()
CL100K = real_counter("cl100k_base")
INEXACT = real_counter(exact=False)
