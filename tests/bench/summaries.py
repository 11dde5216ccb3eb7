"""`python -m tests.bench.summaries --data PATH`: summaries of LoCoMo sessions beside the data's.

Every method chooses whole sentences, written in the same way, of as many words; ROUGE-L compares
them with the session's summary, coverage with the session itself. Constants were chosen on the
first two dialogues; the figures are of the others.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rouge_score.rouge_scorer import RougeScorer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
from sumy.summarizers.text_rank import TextRankSummarizer
from tests.bench.harness import Report
from tests.bench.scoring import mean

from annals_context.clients.counters import counter_for
from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.summarising.pieces import Piece, pieces_of
from annals_context.domain.summarising.quality import coverage
from annals_context.domain.summarising.selecting import Limits, select
from annals_context.domain.summarising.summarise import summary_of_events
from annals_context.domain.summarising.writing import LIMITS

FILE = Path("locomo") / "locomo_dev.json"
TUNING_DIALOGUES = 2
LENGTHS_WORDS = (60, 110, 160)
LEAD_SENTENCES = 3
REPEATS = 3
GENERATION_TARGET_SECONDS = 5
LARGE_EVENTS = 1_000
Order = Callable[[Sequence[Piece]], list[int]]
_count = counter_for("").count


@dataclass(frozen=True, slots=True)
class Session:
    """A session's events and the data's own summary of it."""

    events: list[Event]
    reference: str


class PlainTokenizer:
    """What sumy asks of a tokenizer, without any download."""

    def to_words(self, text: str) -> tuple[str, ...]:
        """Return the words in small letters."""
        return tuple(re.findall(r"\w+", text.lower()))

    def to_sentences(self, text: str) -> tuple[str, ...]:
        """Return the text: it is a sentence already."""
        return (text,)


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True, help="Folder of the data.")
def main(data: Path) -> None:
    """Score every session of the dialogues that nothing was tuned on."""
    report = Report("summaries", {"tuning_dialogues": TUNING_DIALOGUES})
    if not (data / FILE).is_file():
        report.note(f"skipped: {data} does not hold {FILE}")
        report.write()
        return
    dialogues = json.loads((data / FILE).read_bytes())
    sessions = [own for sample in dialogues[TUNING_DIALOGUES:] for own in sessions_of(sample)]
    report.note(f"{len(sessions)} sessions")
    for words in LENGTHS_WORDS:
        _compare(report, sessions, words)
    _compare_with_lead(report, sessions)
    _time(report, sessions)
    report.write()


def sessions_of(sample: dict[str, Any]) -> list[Session]:
    """Return the sessions of a dialogue that the data summarises."""
    found = []
    for name, reference in sample["session_summary"].items():
        turns = sample["conversation"].get(name.removesuffix("_summary"), [])
        if turns:
            events = [_event(seq, turn) for seq, turn in enumerate(turns, start=1)]
            found.append(Session(events, reference))
    return found


def _event(seq: int, turn: dict[str, Any]) -> Event:
    return Event(
        type=EventType.MESSAGE,
        event_id=turn["dia_id"],
        seq=seq,
        role=Role.USER,
        author_name=turn["speaker"],
        content=turn["text"],
    )


def by_us(pieces: Sequence[Piece]) -> list[int]:
    """Best first, as the service chooses."""
    return select(pieces, Limits(10**9, len(pieces)), _count)


def by_place(pieces: Sequence[Piece]) -> list[int]:
    """From the beginning."""
    return list(range(len(pieces)))


def by_text_rank(pieces: Sequence[Piece]) -> list[int]:
    """Best first by sumy's TextRank."""
    tokenizer = PlainTokenizer()
    sentences = [Sentence(piece.text, tokenizer) for piece in pieces]
    ranker = TextRankSummarizer()
    ranker.stop_words = ENGLISH_STOP_WORDS
    ratings = ranker.rate_sentences(ObjectDocumentModel([Paragraph(sentences)]))
    return sorted(range(len(pieces)), key=lambda index: -ratings[sentences[index]])


METHODS: dict[str, Order] = {"ours": by_us, "lead": by_place, "text_rank": by_text_rank}


def _compare(report: Report, sessions: Sequence[Session], words: int) -> None:
    scores = {
        name: [_scores(session, order, words) for session in sessions]
        for name, order in METHODS.items()
    }
    for index, figure in enumerate(("rouge_l", "coverage")):
        means = {name: mean([pair[index] for pair in pairs]) for name, pairs in scores.items()}
        best = max(value for name, value in means.items() if name != "ours")
        for name, value in means.items():
            target = f">= {best:.4f}" if name == "ours" else None
            report.add(f"{name}_{words}_words_{figure}", value, "share", target)


def _compare_with_lead(report: Report, sessions: Sequence[Session]) -> None:
    """Lead-3 as it is: everybody gets as many words as the first three sentences have."""
    for name, order in METHODS.items():
        scores = [
            _scores(session, order, _words(pieces_of(session.events)[:LEAD_SENTENCES]))
            for session in sessions
        ]
        report.add(f"{name}_as_long_as_lead_3_rouge_l", mean([s for s, _ in scores]), "share")
        report.add(f"{name}_as_long_as_lead_3_coverage", mean([c for _, c in scores]), "share")


def _scores(session: Session, order: Order, words: int) -> tuple[float, float]:
    pieces = pieces_of(session.events)
    chosen, left = [], words
    for index in order(pieces):
        length = _words([pieces[index]])
        if length <= left:
            chosen.append(index)
            left -= length
    kept = [pieces[index] for index in sorted(chosen)]
    text = "\n".join(f"{piece.speaker}: {piece.text}" for piece in kept)
    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    return scorer.score(session.reference, text)["rougeL"].fmeasure, coverage(kept, pieces)


def _words(pieces: Sequence[Piece]) -> int:
    """Count a sentence's words and its speaker."""
    return sum(len(piece.text.split()) + 1 for piece in pieces)


def _time(report: Report, sessions: Sequence[Session]) -> None:
    events = [event for session in sessions for event in session.events]
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        for session in sessions:
            for limits in LIMITS.values():
                summary_of_events(session.events, limits, _count)
        seconds.append(1_000 * (time.perf_counter() - started) / len(events))
    report.add_runs("three_levels_per_1000_events", seconds, "s")
    large = events[:LARGE_EVENTS]
    started = time.perf_counter()
    summary_of_events(large, next(reversed(LIMITS.values())), _count)
    target = f"<= {GENERATION_TARGET_SECONDS}"
    report.add("one_of_1000_events", time.perf_counter() - started, "s", target)


if __name__ == "__main__":
    main()
