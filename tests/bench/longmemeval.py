"""LongMemEval_S: finding the sessions that answer a question among some fifty.

Each question has a tenant of its own, each session is a conversation in it. One search over the
tenant returns turns; a session's score is made from the scores of its turns (`session_ranking`).
"""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tests.bench.harness import Report, progress
from tests.bench.scoring import mean, ndcg_any_at, recall_all_at, recall_any_at, reciprocal_rank
from tests.bench.stores import Stores

from annals_client import AnnalsClient

HITS = 100
"""Turns asked for in one search."""
STRONGEST_TURNS = 3
"""Turns of a session that add up to its score."""
MODES = ("dense", "lexical", "hybrid")
CUTOFFS = (5, 10)
TARGETS = {"recall_all_at_5": ">= 0.9", "ndcg_any_at_5": ">= 0.93", "recall_any_at_5": ">= 0.985"}
DATE_FORMAT = "%Y/%m/%d (%a) %H:%M"


@dataclass(frozen=True, slots=True)
class Session:
    """A chat of the history. Its turns are stored a second apart."""

    session_id: str
    started_at: datetime
    turns: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question's ranking of sessions. `gold` may be empty: see `_gold`."""

    ranking: list[str]
    gold: frozenset[str]
    answer_sessions: frozenset[str]
    is_abstention: bool


def run(stores: Stores, data: Path, report: Report, *, questions: int) -> None:
    """Add the figures over `questions` of the questions."""
    path = data / "longmemeval" / "longmemeval_s_dev50.json.gz"
    samples = json.loads(gzip.decompress(path.read_bytes()))
    started = time.monotonic()
    with progress() as shown:
        # Evenly spread over the file.
        chosen = samples[:: max(1, len(samples) // questions)][:questions]
        asked = shown.track(chosen, description="LongMemEval")
        outcomes = [_asked(stores, sample) for sample in asked]
    for mode in MODES:
        _add_figures([outcome[mode] for outcome in outcomes], mode, report)
    seconds = time.monotonic() - started
    report.note(
        f"LongMemEval: {len(outcomes)} of {len(samples)} questions, stored, indexed and asked "
        f"in {seconds:.0f} s"
    )


def session_ranking(hits: Iterable[tuple[str, float]]) -> list[str]:
    """Return sessions, best first, from (session, score) of turns.

    A session's score is the sum of its `STRONGEST_TURNS` best turns: what it says several
    times counts more, its length alone does not.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for session, score in hits:
        scores[session].append(score)
    strength = {
        session: sum(sorted(own, reverse=True)[:STRONGEST_TURNS]) for session, own in scores.items()
    }
    return sorted(strength, key=strength.__getitem__, reverse=True)


def _asked(stores: Stores, sample: dict[str, Any]) -> dict[str, Outcome]:
    """Return the outcome of a question by mode."""
    named = _sessions(sample)
    fill = partial(_fill, question_id=sample["question_id"], sessions=named)
    client, conversation_ids = stores.open(sample["question_id"], fill)
    session_of = {
        conversation_id: session.session_id
        for conversation_id, session in zip(conversation_ids, named, strict=True)
    }
    with client:
        return {mode: _outcome(client, sample, session_of, mode) for mode in MODES}


def _outcome(
    client: AnnalsClient, sample: dict[str, Any], session_of: Mapping[str, str], mode: str
) -> Outcome:
    answer = client.search.events(sample["question"], mode=mode, limit=HITS, ids_only=True)
    return Outcome(
        session_ranking((session_of[hit.conversation_id], hit.score) for hit in answer.hits),
        _gold(sample),
        frozenset(sample["answer_session_ids"]),
        sample["question_id"].endswith("_abs"),
    )


def _sessions(sample: dict[str, Any]) -> list[Session]:
    rows = zip(
        sample["haystack_session_ids"],
        sample["haystack_dates"],
        sample["haystack_sessions"],
        strict=True,
    )
    return [
        Session(session_id, datetime.strptime(date, DATE_FORMAT).replace(tzinfo=UTC), turns)
        for session_id, date, turns in rows
        if turns
    ]


def _fill(client: AnnalsClient, *, question_id: str, sessions: Sequence[Session]) -> list[str]:
    """Store every session as a conversation, at its time."""
    return [
        _store(client, str(uuid5(NAMESPACE_URL, f"{question_id}/{index}")), session)
        for index, session in enumerate(sessions)
    ]


def _store(client: AnnalsClient, conversation_id: str, session: Session) -> str:
    client.conversations.create(conversation_id=conversation_id)
    events = client.formats.parse(json.dumps(_plain(session.turns))).events
    for index, event in enumerate(events):
        event.idempotency_key = f"turn-{index}"
        event.event_time.FromDatetime(session.started_at + timedelta(seconds=index))
    for _ in client.events.stream_append(conversation_id, events):
        pass
    return conversation_id


def _plain(turns: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns]


def _gold(sample: dict[str, Any]) -> frozenset[str]:
    """Return the sessions named as an answer in which a turn of the user has it."""
    sessions = zip(sample["haystack_session_ids"], sample["haystack_sessions"], strict=True)
    return frozenset(
        session_id
        for session_id, turns in sessions
        if "answer" in session_id
        and any(turn["role"] == "user" and turn.get("has_answer") for turn in turns)
    )


def _add_figures(outcomes: Sequence[Outcome], mode: str, report: Report) -> None:
    scored = [outcome for outcome in outcomes if outcome.gold and not outcome.is_abstention]
    for name, metric in (("recall_all", recall_all_at), ("ndcg_any", ndcg_any_at)):
        for cutoff in CUTOFFS:
            scores = [metric(outcome.ranking, outcome.gold, cutoff) for outcome in scored]
            _add(report, mode, f"{name}_at_{cutoff}", scores)
    any_of = [recall_any_at(outcome.ranking, outcome.answer_sessions, 5) for outcome in outcomes]
    _add(report, mode, "recall_any_at_5", any_of)
    _add(report, mode, "mrr", [reciprocal_rank(o.ranking, o.gold) for o in scored])
    if mode == "hybrid":
        report.add("longmemeval_questions_scored", len(scored), "questions")


def _add(report: Report, mode: str, figure: str, scores: Sequence[float]) -> None:
    target = TARGETS.get(figure) if mode == "hybrid" else None
    report.add(f"longmemeval_{mode}_{figure}", mean(scores), "share", target)
