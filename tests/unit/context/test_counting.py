"""Which encoding a model reads, and the margin where nobody knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.context.counters import INEXACT, O200K
from tests.unit.context.profiles import PROFILE

from annals_context.domain.counting import (
    ModelEncoding,
    available_for,
    encoding_of,
    margin_tokens,
)


@pytest.mark.parametrize(
    ("model", "encoding", "exact"),
    [
        ("gpt-4o", "o200k_base", True),
        ("gpt-4o-mini-2024-07-18", "o200k_base", True),
        ("openai/GPT-4.1", "o200k_base", True),
        ("ft:gpt-4o:acme", "o200k_base", True),
        ("gpt-5-nano", "o200k_base", True),
        ("o3", "o200k_base", True),
        ("o4-mini", "o200k_base", True),
        ("gpt-4", "cl100k_base", True),
        ("gpt-4-turbo", "cl100k_base", True),
        ("gpt-3.5-turbo", "cl100k_base", True),
        ("gpt-4omega", "o200k_base", False),
        ("o1000", "o200k_base", False),
        ("claude-sonnet-4", "o200k_base", False),
        ("gemini-2.5-pro", "o200k_base", False),
        ("", "o200k_base", False),
    ],
)
def test_a_model_has_its_encoding(model: str, encoding: str, exact: bool):
    assert encoding_of(model) == ModelEncoding(encoding, exact)


def test_names_of_special_tokens_are_ordinary_text():
    assert O200K.count("<|endoftext|>") > 1


@PROFILE
@given(st.integers(1, 100_000))
def test_the_margin_and_its_inverse_agree(usable: int):
    least = available_for(INEXACT, usable)
    assert least - margin_tokens(INEXACT, least) >= usable
    assert least - 1 - margin_tokens(INEXACT, least - 1) < usable
    assert available_for(O200K, usable) == usable
    assert margin_tokens(O200K, usable) == 0
