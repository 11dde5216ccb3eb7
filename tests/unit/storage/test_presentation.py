"""Presentation chunks, with the real tokenizer."""

from __future__ import annotations

import itertools
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals_storage.domain.presentation import PresentationChunk, presentation_chunks
from annals_storage.embedding.tokens import TiktokenCounter

PROSE = "The keeper counts herons. They stand in the reeds, and wait.\n\nThen he writes it down. "
PIECES = st.sampled_from(
    ["word ", "Größe ", "\n\n", "\n", "   ", "🏳️‍🌈", "日本語の文章。", "é", "\u202e", "x" * 30,
     "=" * 50, "1234567890", ". ", "!", "\t", "\r\n", "𝕏", "naïve ", '{"a":[1,2]}', "<|endoftext|>"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=400).map("".join)


@cache
def tokenizer() -> TiktokenCounter:
    return TiktokenCounter()


def count(text: str) -> int:
    return tokenizer().count([text])[0]


def cut(text: str, chunk_tokens: int, overlap_tokens: int = 0) -> list[PresentationChunk]:
    return presentation_chunks(
        text,
        tokenizer().token_starts(text),
        count,
        chunk_tokens=chunk_tokens,
        overlap_tokens=overlap_tokens,
    )


def check(text: str, chunks: list[PresentationChunk], chunk_tokens: int) -> None:
    """The chunks give the text back, each within its size and counted exactly."""
    joined, covered = "", 0
    for chunk in chunks:
        assert 0 <= chunk.start <= covered < chunk.end <= len(text)
        assert chunk.token_count == count(text[chunk.start : chunk.end]) <= chunk_tokens
        joined += text[covered : chunk.end]
        covered = chunk.end
    assert joined == text


@settings(deadline=None, max_examples=150)
@given(text=TEXTS, chunk_tokens=st.integers(100, 400), share=st.floats(0, 0.49))
def test_chunks_give_the_text_back(text: str, chunk_tokens: int, share: float) -> None:
    overlap_tokens = int(chunk_tokens * share)

    chunks = cut(text, chunk_tokens, overlap_tokens)

    check(text, chunks, chunk_tokens)
    for one, other in itertools.pairwise(chunks):
        assert other.start > one.start
        # Cut out, a stretch may have a token more at either end.
        assert count(text[other.start : one.end]) <= overlap_tokens + 2


@pytest.mark.parametrize(
    "text", [" " * 300_000, "a" * 20_000, "\n" * 50_000, "🏳️‍🌈" * 2_000, "日" * 20_000, "ab" * 9_999]
)
def test_texts_without_joints_are_cut_too(text: str) -> None:
    check(text, cut(text, 500, 50), 500)


def test_a_short_text_is_one_chunk() -> None:
    assert cut("hello world", 100, 20) == [PresentationChunk(0, 11, 2)]


def test_no_text_has_no_chunk() -> None:
    assert cut("", 100, 20) == []


def test_chunks_end_at_paragraphs_and_overlap_from_a_word_on() -> None:
    text = PROSE * 60

    chunks = cut(text, 200, 20)

    assert len(chunks) > 5
    for one, other in itertools.pairwise(chunks):
        assert text[: one.end].endswith("\n\n")
        assert text[other.start - 1].isspace()
        assert 10 <= count(text[other.start : one.end]) <= 20


def test_chunks_are_more_than_half_full() -> None:
    chunks = cut("word " * 5_000, 100, 10)

    assert min(chunk.token_count for chunk in chunks[:-1]) >= 50


@pytest.mark.parametrize(("chunk_tokens", "overlap_tokens"), [(100, 50), (100, -1), (0, 0)])
def test_senseless_sizes_are_refused(chunk_tokens: int, overlap_tokens: int) -> None:
    with pytest.raises(ValueError, match="less than half"):
        cut("hello", chunk_tokens, overlap_tokens)
