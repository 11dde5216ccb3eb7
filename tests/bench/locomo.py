"""LoCoMo: finding the turns that answer a question, and getting them into a token budget."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from tests.bench.harness import Report, progress
from tests.bench.scoring import mean, recall_at, reciprocal_rank
from tests.bench.stores import Stores

from annals_client import AnnalsClient
from annals_client.importers import Importer, ImportOptions

CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop"}
"""Category 5 asks for what was never said."""
MODES = ("dense", "lexical", "hybrid")
CUTOFFS = (5, 10, 20)
BUDGETS_TOKENS = (512, 1_000, 2_000, 4_000)
FORMATS = ("text", "openai-chat")
TARGETS = {
    "locomo_hybrid_recall_at_10": ">= 0.78",
    "locomo_text_evidence_in_2000_tokens": ">= 0.82",
    "locomo_openai_chat_evidence_in_2000_tokens": ">= 0.82",
}
CONCURRENT_CALLS = 2
_DIA_ID = re.compile(r"D\d+:\d+")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the seqs of the turns that answer it."""

    text: str
    category: int
    gold: frozenset[int]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A loaded conversation, the only one of its tenant. `texts`: stored words by seq."""

    client: AnnalsClient
    conversation_id: str
    texts: dict[int, str]
    questions: tuple[Question, ...]


def run(stores: Stores, data: Path, report: Report, *, dialogues: int) -> None:
    """Add the figures of both tasks, over the first `dialogues` conversations."""
    samples = json.loads((data / "locomo" / "locomo_dev.json").read_text())[:dialogues]
    loaded = [_load(stores, sample) for sample in samples]
    try:
        _measure_turns(loaded, report)
        _measure_evidence(loaded, report)
    finally:
        for dialogue in loaded:
            dialogue.client.close()


def _load(stores: Stores, sample: dict[str, Any]) -> Dialogue:
    client, [conversation_id] = stores.open(sample["sample_id"], partial(_fill, sample=sample))
    events = list(client.events.list(conversation_id, page_size=1_000))
    seq_of = {str(event.metadata["dia_id"]): event.seq for event in events}
    texts = {event.seq: event.message.content for event in events}
    return Dialogue(client, conversation_id, texts, tuple(_questions(sample, seq_of)))


def _fill(client: AnnalsClient, *, sample: dict[str, Any]) -> list[str]:
    importer = Importer(client, ImportOptions(forced="dialogue"))
    with TemporaryDirectory() as directory:
        path = Path(directory) / "dialogue.json"
        path.write_text(json.dumps(sample))
        importer.load(path)
    return importer.summary.conversation_ids


def _questions(sample: dict[str, Any], seq_of: dict[str, int]) -> Iterator[Question]:
    for asked in sample["qa"]:
        named = {name for text in asked["evidence"] for name in _DIA_ID.findall(text)}
        gold = frozenset(seq_of[name] for name in named if name in seq_of)
        if asked["category"] in CATEGORIES and gold:
            yield Question(asked["question"], asked["category"], gold)


def _measure_turns(dialogues: Sequence[Dialogue], report: Report) -> None:
    for mode in MODES:
        ranked = _over_questions(dialogues, f"LoCoMo {mode}", partial(_ranking, mode=mode))
        for cutoff in CUTOFFS:
            name = f"locomo_{mode}_recall_at_{cutoff}"
            scores = [recall_at(ranking, question.gold, cutoff) for question, ranking in ranked]
            report.add(name, mean(scores), "share", TARGETS.get(name))
        reciprocal = [reciprocal_rank(ranking, question.gold) for question, ranking in ranked]
        report.add(f"locomo_{mode}_mrr_at_{max(CUTOFFS)}", mean(reciprocal), "share")
        if mode == "hybrid":
            _add_categories(ranked, report)


def _add_categories(ranked: Sequence[tuple[Question, list[int]]], report: Report) -> None:
    for number, name in CATEGORIES.items():
        own = [(question, ranking) for question, ranking in ranked if question.category == number]
        scores = [recall_at(ranking, question.gold, 10) for question, ranking in own]
        report.add(f"locomo_hybrid_recall_at_10_{name}", mean(scores), "share")


def _ranking(dialogue: Dialogue, question: Question, *, mode: str) -> list[int]:
    answer = dialogue.client.search.events(
        question.text,
        conversation_ids=[dialogue.conversation_id],
        mode=mode,
        limit=max(CUTOFFS),
        ids_only=True,
    )
    return [hit.seq for hit in answer.hits]


def _measure_evidence(dialogues: Sequence[Dialogue], report: Report) -> None:
    for payload_format in FORMATS:
        for budget_tokens in BUDGETS_TOKENS:
            prepare = partial(_whole_gold, payload_format=payload_format, budget=budget_tokens)
            label = f"LoCoMo {payload_format} {budget_tokens}"
            found = _over_questions(dialogues, label, prepare)
            whole = sum(len(seqs) for _, seqs in found)
            gold = sum(len(question.gold) for question, _ in found)
            form = payload_format.replace("-", "_")
            name = f"locomo_{form}_evidence_in_{budget_tokens}_tokens"
            report.add(name, whole / gold, "share", TARGETS.get(name))


def _whole_gold(
    dialogue: Dialogue, question: Question, *, payload_format: str, budget: int
) -> set[int]:
    answer = dialogue.client.context.prepare(
        dialogue.conversation_id,
        budget_tokens=budget,
        query=question.text,
        payload_format=payload_format,
    )
    if answer.total_tokens > budget:
        raise AssertionError(f"{answer.total_tokens} tokens exceed the budget of {budget}")
    shown = _one_line(_text_of(answer.payload, payload_format))
    return {seq for seq in question.gold if _one_line(dialogue.texts[seq]) in shown}


def _text_of(payload: str, payload_format: str) -> str:
    if payload_format == "text":
        return payload
    return "\n".join(str(message["content"]) for message in json.loads(payload))


def _one_line(text: str) -> str:
    """Undo the indentation of continued lines, which is no loss."""
    return " ".join(text.split())


def _over_questions(
    dialogues: Sequence[Dialogue], label: str, act: Callable[[Dialogue, Question], T]
) -> list[tuple[Question, T]]:
    asked = [(dialogue, question) for dialogue in dialogues for question in dialogue.questions]
    with progress() as shown, ThreadPoolExecutor(CONCURRENT_CALLS) as threads:
        answers = threads.map(lambda pair: act(*pair), asked)
        tracked = shown.track(answers, total=len(asked), description=label)
        return [(question, answer) for (_, question), answer in zip(asked, tracked, strict=True)]
