"""LongMemEval_S: finding the sessions that answer a question among some fifty.

Each question has a tenant of its own, each session is a conversation in it. One search over the
tenant returns turns; a session's score is made from the scores of its turns (`session_ranking`).
"""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.harness import Report, progress
from tests.bench.scoring import mean, ndcg_any_at, recall_all_at, recall_any_at
from tests.bench.stack import Stack, await_indexed

from annals_client import AnnalsClient
from annals_client.importers import Importer, ImportOptions

HITS = 100
"""Turns asked for in one search."""
STRONGEST_TURNS = 3
"""Turns of a session that add up to its score."""
TARGETS = {"recall_all_at_5": ">= 0.9", "ndcg_any_at_5": ">= 0.93"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question's ranking of sessions. `gold` may be empty: see `_gold`."""

    ranking: list[str]
    gold: frozenset[str]
    answer_sessions: frozenset[str]
    is_abstention: bool


def run(stack: Stack, data: Path, report: Report, *, questions: int) -> None:
    """Add the figures over `questions` of the questions."""
    path = data / "longmemeval" / "longmemeval_s_dev50.json.gz"
    samples = json.loads(gzip.decompress(path.read_bytes()))
    started = time.monotonic()
    with progress() as shown:
        # Evenly spread over the file.
        chosen = samples[:: max(1, len(samples) // questions)][:questions]
        asked = shown.track(chosen, description="LongMemEval")
        outcomes = [_outcome(stack, sample) for sample in asked]
    _add_figures(outcomes, report)
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


def _outcome(stack: Stack, sample: dict[str, Any]) -> Outcome:
    account = stack.create_tenant(sample["question_id"])
    with stack.client(account.api_key) as client:
        session_of = _load(client, sample)
        await_indexed(client)
        answer = client.search.events(sample["question"], limit=HITS, ids_only=True)
    ranking = session_ranking((session_of[hit.conversation_id], hit.score) for hit in answer.hits)
    return Outcome(
        ranking,
        _gold(sample),
        frozenset(sample["answer_session_ids"]),
        sample["question_id"].endswith("_abs"),
    )


def _load(client: AnnalsClient, sample: dict[str, Any]) -> dict[str, str]:
    """Import every session as a conversation; return session ids by conversation id."""
    importer = Importer(client, ImportOptions(forced="openai"))
    sessions = zip(sample["haystack_session_ids"], sample["haystack_sessions"], strict=True)
    named = [(session_id, turns) for session_id, turns in sessions if turns]
    with TemporaryDirectory() as directory:
        path = Path(directory) / "sessions.jsonl"
        path.write_text("\n".join(json.dumps({"messages": _plain(turns)}) for _, turns in named))
        importer.load(path)
    ids = [session_id for session_id, _ in named]
    return dict(zip(importer.summary.conversation_ids, ids, strict=True))


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


def _add_figures(outcomes: Sequence[Outcome], report: Report) -> None:
    scored = [outcome for outcome in outcomes if outcome.gold and not outcome.is_abstention]
    for cutoff in (5, 10):
        for name, metric in (("recall_all", recall_all_at), ("ndcg_any", ndcg_any_at)):
            scores = [metric(outcome.ranking, outcome.gold, cutoff) for outcome in scored]
            figure = f"{name}_at_{cutoff}"
            report.add(f"longmemeval_{figure}", mean(scores), "share", TARGETS.get(figure))
    any_of = [recall_any_at(outcome.ranking, outcome.answer_sessions, 5) for outcome in outcomes]
    report.add("longmemeval_recall_any_at_5", mean(any_of), "share")
    report.add("longmemeval_questions_scored", len(scored), "questions")
