"""PrepareContext through real storage: what the model should see next, in N tokens."""

from __future__ import annotations

import json

import tiktoken

from annals_client import AsyncAnnalsClient, assistant, tool_call, tool_result, user
from annals_common.tokenizers import load_encoding


def tokens(payload: str) -> int:
    encoding: tiktoken.Encoding = load_encoding("o200k_base")
    return len(encoding.encode_ordinary(payload))


async def test_a_small_conversation_is_returned_whole(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append("", [user("What is our SLA?"), assistant("99.9 %")])

    prepared = await annals.context.prepare(stored.conversation_id, budget_tokens=1_000)

    assert json.loads(prepared.payload) == [
        {"role": "user", "content": "What is our SLA?"},
        {"role": "assistant", "content": "99.9 %"},
    ]
    assert prepared.total_tokens == tokens(prepared.payload)
    assert sum(entry.tokens for entry in prepared.ledger) == prepared.total_tokens


async def test_an_old_fact_is_found_and_fits(annals: AsyncAnnalsClient) -> None:
    filler = [user(f"Note {i}: the weather was grey and nothing happened.") for i in range(80)]
    fact = user("The ferry's spare anchor is stored in shed seven.")
    stored = await annals.events.append("", [fact, *filler])

    prepared = await annals.context.prepare(
        stored.conversation_id,
        budget_tokens=400,
        query="Where is the spare anchor?",
        read_your_writes=True,
        timeout=30,
    )

    assert "shed seven" in prepared.payload
    assert prepared.total_tokens == tokens(prepared.payload) <= 400
    assert not prepared.degraded
    assert prepared.omitted_events > 0


async def test_tool_calls_come_with_their_results(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append(
        "",
        [
            user("Weather?"),
            tool_call("call_1", "get_weather", {"city": "Bern"}),
            tool_result("call_1", '{"celsius": 4}'),
            assistant("Four degrees."),
        ],
    )

    prepared = await annals.context.prepare(stored.conversation_id, budget_tokens=1_000)

    _, call, result, _ = json.loads(prepared.payload)
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "call_1"
    assert not prepared.repairs
