"""Chunks fit the window, cover the text and end where a reader would pause."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals_storage.domain.chunking import ChunkSpan, chunk_spans

PROSE = st.text(alphabet=st.sampled_from("ab .!?\n\t,。数é'\u200b😀"), max_size=400)


def word_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"[ab]{1,2}|[^\sab\u200b]", text)]


def chunk_texts(text: str, max_tokens: int, overlap_tokens: int = 0) -> list[str]:
    chunks = chunk_spans(
        text, word_spans(text), max_tokens=max_tokens, overlap_tokens=overlap_tokens
    )
    return [text[chunk.start : chunk.end] for chunk in chunks]


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    max_tokens = draw(st.integers(1, 20))
    return max_tokens, draw(st.integers(0, max_tokens // 2))


@given(text=PROSE, size=sizes())
def test_chunks_cover_everything_but_the_outer_blanks(text, size):
    chunks = chunk_spans(text, word_spans(text), max_tokens=size[0], overlap_tokens=size[1])
    if not chunks:
        assert not word_spans(text)
        return
    assert chunks[0].start == len(text) - len(text.lstrip())
    assert chunks[-1].end == len(text.rstrip())
    assert all(left.end >= right.start for left, right in pairwise(chunks))


@given(text=PROSE, size=sizes())
def test_each_chunk_holds_the_tokens_it_counts_and_never_too_many(text, size):
    spans = word_spans(text)
    for chunk in chunk_spans(text, spans, max_tokens=size[0], overlap_tokens=size[1]):
        inside = [1 for start, end in spans if chunk.start <= start and end <= chunk.end]
        assert len(inside) == chunk.token_count
        assert 1 <= chunk.token_count <= size[0]


@given(text=PROSE, size=sizes())
def test_chunks_advance_and_overlap_by_no_more_than_asked(text, size):
    spans = word_spans(text)
    chunks = chunk_spans(text, spans, max_tokens=size[0], overlap_tokens=size[1])
    for left, right in pairwise(chunks):
        shared = [1 for start, end in spans if right.start <= start and end <= left.end]
        assert len(shared) <= size[1]
        assert left.start < right.start
        assert left.end < right.end


@given(text=PROSE, size=sizes())
def test_all_but_the_last_chunk_are_at_least_half_full(text, size):
    chunks = chunk_spans(text, word_spans(text), max_tokens=size[0], overlap_tokens=size[1])
    assert all(2 * chunk.token_count >= size[0] for chunk in chunks[:-1])


@pytest.mark.parametrize("text", ["", " ", "\n\t \u3000", "\u200b"])
def test_a_text_without_tokens_has_no_chunks(text):
    assert chunk_spans(text, word_spans(text)) == []


def test_a_short_text_is_one_chunk_without_its_outer_blanks():
    assert chunk_spans("  a b\n", word_spans("  a b\n")) == [ChunkSpan(2, 5, 2)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a a a a\n\na. a\na a a", "a a a a\n\n"),
        ("a a a a\na. a a a a a", "a a a a\n"),
        ("a a a a. a a a a a a", "a a a a. "),
        ("a a a a。a a a a a a", "a a a a。"),
        ("a a a a a a a a a a", "a a a a a a "),
    ],
    ids=["paragraph", "line", "sentence", "ideographic-sentence", "word"],
)
def test_the_best_joint_in_the_second_half_is_taken(text, first):
    assert chunk_texts(text, 6)[0] == first


def test_ideographs_are_words_of_their_own():
    assert chunk_texts("数数数数数", 2) == ["数数", "数数", "数"]


def test_a_word_is_cut_only_when_it_alone_exceeds_the_window():
    assert chunk_texts("ababababab", 2) == ["abab", "abab", "ab"]


def test_the_overlap_starts_at_a_word():
    assert chunk_texts("a a abab a a", 4, 2) == ["a a abab ", "abab a a"]
    assert chunk_texts("a abab abab a", 4, 1) == ["a abab ", "abab a"]


@pytest.mark.parametrize(("max_tokens", "overlap_tokens"), [(0, 0), (4, 3), (4, -1)])
def test_an_impossible_size_is_refused(max_tokens, overlap_tokens):
    with pytest.raises(ValueError, match="at most half"):
        chunk_spans("a", [(0, 1)], max_tokens=max_tokens, overlap_tokens=overlap_tokens)
