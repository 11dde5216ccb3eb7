"""Contexts of fixed conversations, byte by byte.

ANNALS_UPDATE_GOLDEN=1 writes the files anew; read the difference before committing it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.golden.context.conversations import hits_of, long_talk, support
from tests.golden.context.prepared import PERIODS, SUMMARIES, TOPICS
from tests.unit.context.counters import O200K

from annals_context.domain.assembly import assemble
from annals_context.domain.formats import openai_chat, text
from annals_context.domain.model import ContextRequest, PayloadFormat, PreparedContext
from annals_context.domain.options import IndexOptions, SnippetStrategy, StrategyName

FILES = Path(__file__).parent / "files"
SUFFIXES = {
    PayloadFormat.OPENAI_CHAT: "json",
    PayloadFormat.TEXT: "txt",
    PayloadFormat.ANTHROPIC_MESSAGES: "anthropic.json",
    PayloadFormat.GEMINI_CONTENTS: "gemini.json",
    PayloadFormat.OPENAI_RESPONSES: "responses.json",
}
CONVERSATIONS = {"support": (support(), (5, 1)), "long_talk": (long_talk(), (8, 14, 30, 3))}
BUDGETS_TOKENS = (150, 500, 2_000)


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("strategy", [StrategyName.FULL, StrategyName.SNIPPET])
@pytest.mark.parametrize("payload_format", SUFFIXES)
@pytest.mark.parametrize("budget_tokens", BUDGETS_TOKENS)
def test_context(
    name: str, strategy: StrategyName, payload_format: PayloadFormat, budget_tokens: int
):
    events, found = CONVERSATIONS[name]
    context = assemble(
        ContextRequest(
            counter=O200K,
            budget_tokens=budget_tokens,
            total_events=len(events),
            recent=events[-4:],
            relevant=hits_of(events, *found),
            others=events[:-4],
            response_reserve_tokens=20,
            system_prompt="You are a helpful assistant.",
            current_message="What is next?",
            payload_format=payload_format,
            options=IndexOptions(strategy=strategy),
        )
    )
    stem = f"{name}.{strategy}.{budget_tokens}.{SUFFIXES[payload_format]}"
    check(stem, context.payload)
    check(f"{stem}.ledger", accounts(context))


@pytest.mark.parametrize("strategy", [name for name in StrategyName if name != "adaptive"])
@pytest.mark.parametrize("payload_format", PayloadFormat)
def test_strategy(strategy: StrategyName, payload_format: PayloadFormat):
    wanted = prepared_talk(IndexOptions(strategy=strategy), payload_format)
    context = assemble(wanted)
    stem = f"prepared.{strategy}.{SUFFIXES[payload_format]}"
    check(stem, context.payload)
    check(f"{stem}.ledger", accounts(context))


@pytest.mark.parametrize("strategy", SnippetStrategy)
def test_snippets(strategy: SnippetStrategy):
    options = IndexOptions(strategy=StrategyName.SNIPPET, snippet_strategy=strategy)
    check(f"snippets.{strategy}.txt", assemble(prepared_talk(options, PayloadFormat.TEXT)).payload)


def prepared_talk(options: IndexOptions, payload_format: PayloadFormat) -> ContextRequest:
    """Ask for the long talk with everything that background work knows of it."""
    events = CONVERSATIONS["long_talk"][0]
    return ContextRequest(
        counter=O200K,
        budget_tokens=1_200,
        total_events=len(events),
        recent=events[-4:],
        relevant=hits_of(events, 8, 14, 30, 3),
        others=events[:-4],
        response_reserve_tokens=20,
        system_prompt="You are a helpful assistant.",
        current_message="What is next?",
        payload_format=payload_format,
        options=options,
        topics=TOPICS,
        periods=PERIODS,
        summaries=SUMMARIES,
    )


def test_render():
    events = CONVERSATIONS["support"][0]
    check("support.rendered.json", openai_chat.render(events).payload)
    check("support.rendered.txt", text.render(events))


def accounts(context: PreparedContext) -> str:
    members = {name: value for name, value in asdict(context).items() if name != "payload"}
    members["items"] = [list(item.values()) for item in members["items"]]
    members["ledger"] = [list(entry.values()) for entry in members["ledger"]]
    lines = [f"{name}: {json.dumps(value)}" for name, value in members.items()]
    return "\n".join(lines).replace("], [", "],\n  [") + "\n"


def check(name: str, actual: str) -> None:
    path = FILES / name
    if os.environ.get("ANNALS_UPDATE_GOLDEN"):
        path.write_bytes(actual.encode())
    assert path.read_bytes().decode() == actual
