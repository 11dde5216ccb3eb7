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
from tests.unit.context.counters import O200K

from annals_context.domain.assembly import assemble
from annals_context.domain.formats import openai_chat, text
from annals_context.domain.model import (
    ContextRequest,
    PayloadFormat,
    PreparedContext,
    StrategyName,
)

FILES = Path(__file__).parent / "files"
SUFFIXES = {PayloadFormat.OPENAI_CHAT: "json", PayloadFormat.TEXT: "txt"}
OTHERS = sorted(set(PayloadFormat) - SUFFIXES.keys())
CONVERSATIONS = {"support": (support(), (5, 1)), "long_talk": (long_talk(), (8, 14, 30, 3))}
BUDGETS_TOKENS = (150, 500, 2_000)


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("strategy", [StrategyName.FULL, StrategyName.SNIPPET])
@pytest.mark.parametrize("payload_format", SUFFIXES)
@pytest.mark.parametrize("budget_tokens", BUDGETS_TOKENS)
def test_context(
    name: str, strategy: StrategyName, payload_format: PayloadFormat, budget_tokens: int
):
    context = assemble(wanted(name, strategy, payload_format, budget_tokens))
    stem = f"{name}.{strategy}.{budget_tokens}.{SUFFIXES[payload_format]}"
    check(stem, context.payload)
    check(f"{stem}.ledger", accounts(context))


@pytest.mark.parametrize("payload_format", OTHERS)
def test_context_for_other_providers(payload_format: PayloadFormat):
    context = assemble(wanted("support", StrategyName.SNIPPET, payload_format, 500))
    check(f"support.snippet.500.{payload_format}.json", context.payload)
    check(f"support.snippet.500.{payload_format}.ledger", accounts(context))


def wanted(
    name: str, strategy: StrategyName, payload_format: PayloadFormat, budget_tokens: int
) -> ContextRequest:
    events, found = CONVERSATIONS[name]
    return ContextRequest(
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
        strategy=strategy,
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
