"""What a topic is called, what it says, and how it sounds: words of its own events alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

from annals_common.function_words import STRONG

SAMPLE_CHARS = 120
MIN_SAMPLE_CHARS = 20
SAMPLES = 3
SUMMARY_SENTENCES = 2
MIN_SENTENCE_CHARS, MAX_SENTENCE_CHARS = 40, 300
LABEL_TERMS = 3
NO_LABEL = "untitled"
_WORD = r"(?u)\b[^\W\d_][\w-]+\b"
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_FILLERS = """
absolutely actually amazing appreciate aren awesome bit bye can chat cool couldn course day days
definitely did didn does doesn doing don excited exciting feel feeling feels forward glad gonna
good got guys haha happy hasn haven hear hello hey hi hope incredible inspiring isn keep kind
kinda lets life like ll long lot lots love loved lovely maybe nice okay people pic pretty re
really right said say says sounds special super sure take talk tell thank thanks thing things
think thought time times today told tomorrow totally tried try trying used using ve wait wanna
want wanted wasn way week well went wonder wonderful work wow ya yeah year years yep yes yesterday
"""


@dataclass(frozen=True, slots=True)
class Said:
    """Words of an event. `place` is the caller's. `author`: who says them; "" when unknown."""

    place: int
    text: str
    author: str = ""


@dataclass(frozen=True, slots=True)
class TopicTexts:
    """Texts of a topic; lines with the place of the event they are from."""

    label: str
    summary: tuple[tuple[int, str], ...]
    samples: tuple[tuple[int, str], ...]


def stop_words() -> frozenset[str]:
    """Return words that name no topic, in five languages."""

    english = set(STRONG["en"].split())
    others = {word for name, words in STRONG.items() if name != "en" for word in words.split()}
    # English words that other languages spell alike name topics in English: "art", "war".
    return frozenset(ENGLISH_STOP_WORDS | (others - english) | set(_FILLERS.split()))


def topic_texts(topics: Sequence[Sequence[Said]]) -> list[TopicTexts]:
    """Return the texts of topics from their most typical events, the most typical first.

    Labels contrast the topics with one another: the more of them there are, the better.
    """
    labels = _labels(topics)
    return [
        TopicTexts(label, _summary(said), _samples(said))
        for label, said in zip(labels, topics, strict=True)
    ]


def _labels(topics: Sequence[Sequence[Said]]) -> list[str]:
    """Class-based tf-idf: a topic is one document, and a term counts for what it has of it."""

    names = {part.lower() for said in topics for one in said for part in one.author.split()}
    words = CountVectorizer(
        stop_words=sorted(stop_words() | names), ngram_range=(1, 2), token_pattern=_WORD
    )
    try:
        counts = words.fit_transform("\n".join(one.text for one in said) for said in topics)
    except ValueError:
        # Nothing but stop words.
        return [NO_LABEL for _ in topics]
    frequency = np.asarray(counts.sum(axis=0)).ravel()
    weights = np.log1p(counts.sum() / max(1, len(topics)) / frequency)
    scores = normalize(counts, norm="l1", axis=1).multiply(weights).tocsr()
    terms = words.get_feature_names_out()
    return [_label(terms, scores[row].toarray().ravel()) for row in range(len(topics))]


def _label(terms: Sequence[str], scores: NDArray[np.float64]) -> str:
    chosen: list[str] = []
    for place in np.lexsort((np.arange(len(scores)), -scores)):
        if scores[place] <= 0 or len(chosen) == LABEL_TERMS:
            break
        if not _repeats(terms[place], chosen):
            chosen.append(terms[place])
    return ", ".join(chosen) or NO_LABEL


def _repeats(term: str, chosen: Sequence[str]) -> bool:
    """Whether a term shares a word with one that was chosen, also in the plural."""
    stems = {word.rstrip("s") for word in term.split()}
    return any(stems & {word.rstrip("s") for word in other.split()} for other in chosen)


def _summary(said: Sequence[Said]) -> tuple[tuple[int, str], ...]:
    """Return the sentences that have most of what all of them have, in the order said."""

    sentences = [(one.place, sentence) for one in said for sentence in _sentences(one.text)]
    if not sentences:
        return ()
    vectorizer = TfidfVectorizer(
        stop_words=sorted(stop_words()), token_pattern=_WORD, sublinear_tf=True
    )
    try:
        vectors = vectorizer.fit_transform(text for _, text in sentences)
    except ValueError:
        return ()
    likeness = np.asarray(vectors @ np.asarray(vectors.mean(axis=0)).ravel()).ravel()
    order = np.lexsort((np.arange(len(sentences)), -likeness))
    best = list(dict.fromkeys(sentences[place] for place in order))[:SUMMARY_SENTENCES]
    return tuple(sorted(best))


def _sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE_END.split(text):
        sentence = " ".join(part.split())
        if MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS:
            yield sentence


def _samples(said: Sequence[Said]) -> tuple[tuple[int, str], ...]:
    lines = [(one.place, _line(one.text)) for one in said]
    long = [line for line in lines if len(line[1]) >= MIN_SAMPLE_CHARS]
    return tuple((long or [line for line in lines if line[1]])[:SAMPLES])


def _line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SAMPLE_CHARS else f"{flat[: SAMPLE_CHARS - 1].rstrip()}…"
