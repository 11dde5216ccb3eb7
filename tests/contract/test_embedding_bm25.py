"""Sparse vectors: the same terms from documents and queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals_storage.embedding.bm25 import Bm25Encoder

ENCODER = Bm25Encoder()


def test_query_and_document_meet_in_the_stem():
    document = ENCODER.encode_document("The migrations were running")
    query = ENCODER.encode_query("migration run", "en")
    assert set(query.indices) == set(document.indices)
    assert set(query.values) == {1.0}


def test_a_repeated_term_weighs_more_but_not_proportionally():
    once = ENCODER.encode_document("puppy").values[0]
    twice = ENCODER.encode_document("puppy puppy").values[0]
    assert once < twice < 2 * once


@pytest.mark.parametrize("text", ["", " \n", "the and of", "!?…"])
def test_a_text_without_terms_is_empty(text):
    assert ENCODER.encode_document(text).indices == ()
    assert ENCODER.encode_query(text).values == ()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_indices_are_distinct_and_weights_positive(text):
    vector = ENCODER.encode_document(text)
    assert len(set(vector.indices)) == len(vector.indices) == len(vector.values)
    assert all(value > 0 for value in vector.values)


def test_the_language_decides_stop_words():
    german = Bm25Encoder(language="german")
    assert german.encode_document("anders jener").indices == ()
    assert ENCODER.encode_document("anders jener").indices != ()


def test_an_unknown_language_is_refused():
    with pytest.raises(ValueError, match="klingon"):
        Bm25Encoder(language="klingon")
