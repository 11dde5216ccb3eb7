"""Tokens: which encoding a model reads, and how much of a budget may be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

LONGEST_TOKEN_BYTES = 128
"""No token of o200k_base or cl100k_base stands for more bytes."""
MARGIN_PERCENT = 10
"""Kept free of the available budget when the model's real tokenizer is not public."""
_SAMPLE_CHARS_PER_TOKEN = 16
_SAMPLE_SLACK_TOKENS = 8
"""A sample may end within a word and then count a little more than it does in its text."""
FALLBACK_ENCODING = "o200k_base"
_ENCODING_BY_MODEL_PREFIX = (
    ("gpt-4o", "o200k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4.5", "o200k_base"),
    ("gpt-5", "o200k_base"),
    ("chatgpt-4o", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3", "o200k_base"),
    ("o4", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-3.5", "cl100k_base"),
    ("gpt-35", "cl100k_base"),
)
_AFTER_PREFIX = frozenset("-.:@_")


@dataclass(frozen=True, slots=True)
class ModelEncoding:
    """The encoding of a model; `exact` is False when it only stands in for the real one."""

    encoding: str
    exact: bool


class Counter(Protocol):
    """Counts the tokens of texts in one encoding."""

    @property
    def encoding(self) -> str:
        """Name of the encoding, such as "o200k_base"."""
        ...

    @property
    def exact(self) -> bool:
        """False when the encoding stands in for one that is not public."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of `text`; special tokens are counted as ordinary text."""
        ...


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """A counter over an encoder such as tiktoken's `Encoding.encode_ordinary`."""

    encoding: str
    exact: bool
    encode: Callable[[str], Sequence[int]]

    def count(self, text: str) -> int:
        """Return the tokens of `text`."""
        return len(self.encode(text))


def surely_exceeds(counter: Counter, text: str, limit: int) -> bool:
    """Tell by its length or a sample that a text takes more than `limit` tokens."""
    if len(text) > limit * LONGEST_TOKEN_BYTES:
        return True
    sample_chars = limit * _SAMPLE_CHARS_PER_TOKEN
    if len(text) <= sample_chars:
        return False
    return counter.count(text[:sample_chars]) > limit + _SAMPLE_SLACK_TOKENS


def encoding_of(model: str) -> ModelEncoding:
    """Return the encoding of a model such as "gpt-4o-mini", "openai/gpt-4o" or "claude-x"."""
    name = model.strip().lower().removeprefix("openai/").removeprefix("ft:")
    for prefix, encoding in _ENCODING_BY_MODEL_PREFIX:
        if _has_prefix(name, prefix):
            return ModelEncoding(encoding, exact=True)
    return ModelEncoding(FALLBACK_ENCODING, exact=False)


def margin_tokens(counter: Counter, available_tokens: int) -> int:
    """Return the tokens to keep free of `available_tokens` because counting is not exact."""
    if counter.exact:
        return 0
    return max(1, -(-available_tokens * MARGIN_PERCENT // 100))


def available_for(counter: Counter, usable_tokens: int) -> int:
    """Return the smallest available budget that leaves `usable_tokens` after the margin."""
    if counter.exact:
        return usable_tokens
    return max(1, -(-usable_tokens * 100 // (100 - MARGIN_PERCENT)))


def _has_prefix(name: str, prefix: str) -> bool:
    rest = name.removeprefix(prefix)
    return rest != name and (not rest or rest[0] in _AFTER_PREFIX)
