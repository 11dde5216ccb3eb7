"""BM25 term weights, computed in process."""

from __future__ import annotations

from qdrant_edge import Bm25, Bm25Config
from qdrant_edge import SparseVector as EdgeSparseVector

from annals_storage.domain.search import SparseVector

DEFAULT_LANGUAGE = "english"

AVERAGE_CHUNK_TERMS = 64.0
"""Terms, stop words left out, at which length is neither rewarded nor punished.

A chat turn has 13 on average and a full chunk 102. On LoCoMo (760 questions, 2,760 turns)
recall@10 was .606 at 13, .621 at 30, .625 at 64 and .627 at 256: short turns should hardly be
preferred to long ones, while a full chunk should still not win by its length alone.
"""


class Bm25Encoder:
    """Turns text into BM25 weights; the engine adds the inverse document frequency.

    Implements `SparseEncoder`. `language` selects stop words and stemmer, by its English
    name. Raises `ValueError` for a language the engine does not know.
    """

    def __init__(
        self, *, language: str = DEFAULT_LANGUAGE, average_terms: float = AVERAGE_CHUNK_TERMS
    ) -> None:
        self._bm25 = Bm25(Bm25Config(language=language, avg_len=average_terms))

    def encode_document(self, text: str) -> SparseVector:
        """Return saturated, length-normalised term frequencies; empty for a text of stop words."""
        return _to_domain(self._bm25.embed_document(text))

    def encode_query(self, text: str) -> SparseVector:
        """Return weight 1 for each distinct term."""
        return _to_domain(self._bm25.embed_query(text))


def _to_domain(vector: EdgeSparseVector) -> SparseVector:
    return SparseVector(indices=tuple(vector.indices), values=tuple(vector.values))
