"""Token counters over the public tokenizers."""

from __future__ import annotations

from functools import cache, partial

from annals_common.tokenizers import encode_text, load_encoding
from annals_context.domain.counting import TokenCounter, encoding_of

DEFAULT_MODEL = "gpt-4o"


def counter_for(model: str) -> TokenCounter:
    """Return the counter of a model; empty means the default model."""
    found = encoding_of(model or DEFAULT_MODEL)
    return _counter(found.encoding, found.exact)


@cache
def _counter(encoding: str, exact: bool) -> TokenCounter:  # noqa: FBT001 - a cache key
    return TokenCounter(encoding, exact, partial(encode_text, load_encoding(encoding)))


def count_in(encoding: str, text: str) -> int:
    """Return the tokens of a text in an encoding such as "o200k_base"."""
    return _counter(encoding, exact=True).count(text)
