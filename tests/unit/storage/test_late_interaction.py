"""MaxSim over the signs of token vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals_storage.domain.late_interaction import (
    BLOCK_TOKENS,
    TokenVectors,
    max_similarities,
    pack_signs,
)

DIMENSIONS = 384


def tokens(count: int, seed: int = 0) -> TokenVectors:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(np.float32)
    unit: TokenVectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def as_defined(query: TokenVectors, text: TokenVectors) -> float:
    """Every token of the query, every token of the text, one by one."""
    signs = np.where(text > 0, 1.0, -1.0) / np.sqrt(DIMENSIONS)
    return float(np.mean([max(float(q @ d) for d in signs) for q in query])) if len(text) else 0.0


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.lists(st.integers(0, 12), min_size=1, max_size=8), st.integers(0, 99))
def test_is_what_it_is_defined_as(asked: int, lengths: list[int], seed: int) -> None:
    query = tokens(asked, seed)
    texts = [tokens(length, seed + number) for number, length in enumerate(lengths, start=1)]

    found = max_similarities(query, [pack_signs(text) for text in texts])

    assert found == pytest.approx([as_defined(query, text) for text in texts], abs=1e-5)


def test_blocks_do_not_show() -> None:
    text = tokens(BLOCK_TOKENS + 3)

    [found] = max_similarities(tokens(2, seed=7), [pack_signs(text)])

    assert found == pytest.approx(as_defined(tokens(2, seed=7), text), abs=1e-5)


def test_a_token_is_most_like_itself() -> None:
    query = tokens(1)
    texts = [pack_signs(tokens(5, seed)) for seed in range(1, 5)] + [pack_signs(query)]

    assert int(np.argmax(max_similarities(query, texts))) == 4


def test_a_query_without_tokens_is_like_nothing() -> None:
    assert max_similarities(tokens(0), [pack_signs(tokens(3))]).tolist() == [0.0]


def test_a_token_takes_a_bit_per_dimension() -> None:
    assert len(pack_signs(tokens(5))) == 5 * 48
