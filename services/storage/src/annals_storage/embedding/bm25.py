"""BM25 term weights, computed in process, of texts in several languages.

Runs of Chinese and Japanese characters become pairs of characters (embedding/cjk.py); all else is
cut into words, which lose the function words and endings of the text's language.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from qdrant_edge import Bm25, Bm25Config, DisabledStemmer, Language, StopwordsSet, TokenizerType
from qdrant_edge import SparseVector as EdgeSparseVector

from annals_storage.domain.languages import LANGUAGES
from annals_storage.domain.search import SparseVector
from annals_storage.embedding.cjk import parts_of, script_language, terms_of
from annals_storage.embedding.language_detection import LATIN, likely_languages

AUTO = "auto"
DEFAULT_LANGUAGE = "english"
KNOWN_LANGUAGES = tuple(sorted(n.lower() for n in dir(Language) if not n.startswith("_")))
"""What the engine has stop words for."""

AVERAGE_CHUNK_TERMS = 64.0
"""Terms, stop words left out, at which length is neither rewarded nor punished.

A chat turn has 13 on average and a full chunk 102. On LoCoMo (760 questions, 2,760 turns)
recall@10 was .606 at 13, .621 at 30, .625 at 64 and .627 at 256: short turns should hardly be
preferred to long ones, while a full chunk should still not win by its length alone.
"""
CJK_TERMS_PER_WORD = 3.0
"""Pairs and single characters where a spaced language would have one word."""


class Bm25Encoder:
    """Turns text into BM25 weights; the engine adds the inverse document frequency.

    Implements `SparseEncoder`. `language`: what texts are taken to be in whose language cannot be
    told, by its English name; "auto" is English. Raises `ValueError` for one the engine does not
    know.
    """

    def __init__(self, *, language: str = AUTO, average_terms: float = AVERAGE_CHUNK_TERMS) -> None:
        self._fallback = fallback_language(language)
        self._words = {
            name: _words(name, frozenset({name}), average_terms)
            for name in {*(LANGUAGES[code] for code in LATIN), self._fallback}
        }
        self._pairs = _pairs(average_terms * CJK_TERMS_PER_WORD)

    def encode_document(self, text: str) -> SparseVector:
        """Return saturated, length-normalised term frequencies; empty for a text of stop words."""
        runs, rest = parts_of(text)
        words = self._words[self._document_language(rest)].embed_document(rest)
        if not runs:
            return _to_domain(words)
        pairs = self._pairs.embed_document(" ".join(terms_of(runs, script_language(runs))))
        return _united([words, pairs])

    def encode_query(self, text: str, language: str | None = None) -> SparseVector:
        """Return weight 1 for each distinct term.

        `language`: ISO 639-1, the language to take the query for; None: as it seems. A query that
        could be in several is looked for in all of them, and always in the fallback's terms too:
        those a short document has whose language could not be told.
        """
        runs, rest = parts_of(text)
        vectors = [encoder.embed_query(rest) for encoder in self._query_encoders(rest, language)]
        if runs:
            script = language if language in ("zh", "ja") else script_language(runs)
            vectors.append(self._pairs.embed_query(" ".join(terms_of(runs, script))))
        return _united(vectors) if len(vectors) > 1 else _to_domain(vectors[0])

    def _document_language(self, text: str) -> str:
        likely = likely_languages(text)
        return LANGUAGES[likely[0]] if len(likely) == 1 else self._fallback

    def _query_encoders(self, text: str, language: str | None) -> list[Bm25]:
        likely = (language,) if language in LATIN else likely_languages(text)
        if not likely:
            return list(self._words.values())
        names = [LANGUAGES[code] for code in likely]
        encoders = [self._words[name] for name in names]
        if self._fallback not in names:
            stop_words = frozenset({*names, self._fallback})
            encoders.append(_words(self._fallback, stop_words, AVERAGE_CHUNK_TERMS))
        return encoders


def fallback_language(setting: str) -> str:
    """Return the English name of the language "auto" or a name stands for. Raises ValueError."""
    if setting == AUTO:
        return DEFAULT_LANGUAGE
    if setting not in KNOWN_LANGUAGES:
        raise ValueError(f"unknown language {setting!r}: {', '.join((AUTO, *KNOWN_LANGUAGES))}")
    return setting


@lru_cache(maxsize=256)
def _words(stemmed_as: str, stop_words_of: frozenset[str], average_terms: float) -> Bm25:
    languages = {getattr(Language, name.capitalize()) for name in stop_words_of}
    stop_words = StopwordsSet(languages=languages)
    return Bm25(Bm25Config(language=stemmed_as, stopwords=stop_words, avg_len=average_terms))


def _pairs(average_terms: float) -> Bm25:
    """Return what weighs terms that are given with spaces between them."""
    return Bm25(
        Bm25Config(
            tokenizer=TokenizerType.Whitespace,
            stemmer=DisabledStemmer(),
            stopwords=StopwordsSet(),
            avg_len=average_terms,
        )
    )


def _united(vectors: Iterable[EdgeSparseVector]) -> SparseVector:
    """Return all terms; of two that share an index, the greater weight."""
    weights: dict[int, float] = {}
    for vector in vectors:
        for index, value in zip(vector.indices, vector.values, strict=True):
            weights[index] = max(value, weights.get(index, 0.0))
    indices = sorted(weights)
    return SparseVector(tuple(indices), tuple(weights[index] for index in indices))


def _to_domain(vector: EdgeSparseVector) -> SparseVector:
    return SparseVector(indices=tuple(vector.indices), values=tuple(vector.values))
