"""Snippets are short, on one line, and cut between graphemes."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.context.profiles import PROFILE

from annals_context.domain.snippets import best_sentence, cut_to_graphemes, snippet

FAMILY = "\N{WOMAN}\u200d\N{WOMAN}\u200d\N{GIRL}"


@pytest.mark.parametrize(
    ("text", "max_chars", "expected"),
    [
        ("", 5, ""),
        ("short", 5, "short"),
        ("longer", 5, "longe…"),
        ("a  b\n\nc", 10, "a b c"),
        ("one two", 4, "one…"),
        ("nae\u0308", 3, "na…"),
        (f"ab{FAMILY}", 6, "ab…"),
        (
            "\N{REGIONAL INDICATOR SYMBOL LETTER C}\N{REGIONAL INDICATOR SYMBOL LETTER H}" * 2,
            3,
            "🇨🇭…",
        ),
        ("e" + "\u0301" * 9, 3, "e\u0301\u0301…"),
    ],
)
def test_it_is_cut_between_graphemes(text: str, max_chars: int, expected: str):
    assert snippet(text, max_chars=max_chars) == expected


def test_it_begins_at_the_word_that_holds_the_start():
    text = "alpha beta gamma delta epsilon zeta"
    assert snippet(text, max_chars=11, start=13) == "…gamma delta…"


@pytest.mark.parametrize("start", [-3, 0, 99])
def test_a_start_outside_is_the_beginning(start: int):
    assert snippet("alpha beta", max_chars=5, start=start) == "alpha…"


@PROFILE
@given(st.text(max_size=300), st.integers(1, 120), st.integers(0, 300))
def test_it_is_one_line_within_its_length(text: str, max_chars: int, start: int):
    short = snippet(text, max_chars=max_chars, start=start)
    assert len(short) <= max_chars + 2
    assert len(short.splitlines()) <= 1


@PROFILE
@given(st.text(st.characters(codec="utf-8"), max_size=60), st.integers(1, 60))
def test_a_cut_is_the_clusters_that_fit(text: str, max_chars: int):
    whole = [m.end() for m in regex.finditer(r"\X", text) if m.end() <= max_chars]
    expected = text if len(text) <= max_chars else text[: whole[-1] if whole else max_chars]
    assert cut_to_graphemes(text, max_chars) in {expected, expected.rstrip()}


class TestBestSentence:
    TEXT = "First we met. The wave limit is three metres. Nothing else matters. 波の高さは二です。"

    @pytest.mark.parametrize(
        ("query", "begins"),
        [
            ("At what wave limit do we stop?", "The wave limit"),
            ("波の高さ", "波の高さ"),
            ("something unheard of", "First"),
            ("", "First"),
        ],
    )
    def test_it_shares_most_words_with_the_query(self, query: str, begins: str) -> None:
        start = best_sentence(self.TEXT, 0, len(self.TEXT), query)

        assert self.TEXT[start:].startswith(begins)

    def test_it_stays_within_the_chunk(self) -> None:
        end = self.TEXT.index("The wave")

        assert best_sentence(self.TEXT, 0, end, "wave limit") == 0

    def test_an_unknown_end_keeps_the_start(self) -> None:
        assert best_sentence(self.TEXT, 5, 0, "wave") == 5
