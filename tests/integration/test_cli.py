"""The `annals` command against both real services."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TRAJECTORY = [
    {"role": "system", "content": "You are an airline agent."},
    {"role": "user", "content": "Cancel reservation EHGLP3, please."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "get_reservation", "arguments": '{"id": "EHGLP3"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "name": "get_reservation", "content": '{"ok": 1}'},
    {"role": "assistant", "content": "It is cancelled; the refund takes five days."},
]
DIALOGUE = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann" if n % 2 else "Bo", "dia_id": f"D1:{n}", "text": f"Turn {n} of it"}
            for n in range(1, 121)
        ],
    },
}


def write(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


async def test_imported_messages_come_back_as_they_were(run, tmp_path):
    path = write(tmp_path, [{"task_id": 3, "messages": TRAJECTORY}])

    imported = await run("import", path, "--json")
    (conversation_id,) = imported["conversation_ids"]
    prepared = await run("context", conversation_id, "--budget", 2_000, "--json")
    calls = await run("list", conversation_id, "--type", "tool-call", "--json")
    stored = await run("conversation", "get", conversation_id, "--json")

    assert (imported["events"], imported["replayed"]) == (5, 0)
    assert "call_1" in prepared["payload"]
    assert prepared["total_tokens"] <= 2_000
    assert calls[0]["tool_call"]["input_json"] == '{"id": "EHGLP3"}'
    assert stored["metadata"]["task_id"] == 3


@pytest.mark.parametrize("content", [[{"messages": TRAJECTORY}], [DIALOGUE]])
async def test_an_import_is_repeated_without_a_trace(run, tmp_path, content):
    path = write(tmp_path, content)

    first = await run("import", path, "--json")
    again = await run("import", path, "--batch-size", 7, "--title", "other", "--json")
    events = await run("list", first["conversation_ids"][0], "--json")

    assert again["conversation_ids"] == first["conversation_ids"]
    assert again["replayed"] == again["events"] == first["events"] == len(events)
    assert (first["conversations"], first["skipped_conversations"]) == (1, 0)
    assert (again["conversations"], again["skipped_conversations"]) == (0, 1)


@pytest.mark.parametrize("budget", [500, 2_000, 8_000])
async def test_a_dialogue_fits_every_budget(run, tmp_path, budget):
    imported = await run("import", write(tmp_path, [DIALOGUE]), "--json")

    prepared = await run(
        "context",
        imported["conversation_ids"][0],
        "What was turn 17?",
        "--budget",
        budget,
        "--reserve",
        100,
        "--format",
        "text",
        "--json",
    )

    assert 0 < prepared["total_tokens"] <= budget - 100
    assert sum(entry["tokens"] for entry in prepared["ledger"]) == prepared["total_tokens"]


async def test_a_conversation_is_managed(run):
    appended = await run("append", "new", "--role", "user", "Where is order 4711?", "--json")
    conversation_id = appended["conversation_id"]

    await run("conversation", "update", conversation_id, "--title", "Order 4711")
    await run("conversation", "delete", conversation_id)
    missing = await run("list", conversation_id, exit_code=1)
    await run("conversation", "restore", conversation_id)
    ended = await run("conversation", "end", conversation_id, "--summary", "done", "--json")
    refused = await run("append", conversation_id, "more", exit_code=1)

    assert "no conversation" in missing.stderr
    assert (ended["status"], ended["title"]) == ("CONVERSATION_STATUS_COMPLETED", "Order 4711")
    assert "set its status to ACTIVE" in refused.stderr


async def test_search_finds_what_was_just_appended(run):
    appended = await run("append", "new", "The spare anchor is in shed seven.", "--json")

    found = await run(
        "search",
        "anchor",
        "--conversation",
        appended["conversation_id"],
        *("--role", "user", "--type", "message", "--from", "2020-01-01", "--min-score", 0.1),
        *("--reference-time", "2026-04-20"),
        "--fresh",
        "--explain",
        "--json",
    )

    assert found["hits"][0]["event"]["message"]["content"].endswith("shed seven.")
    assert found["hits"][0]["components"]


async def test_a_budget_too_small_names_the_one_that_works(run):
    appended = await run("append", "new", "hello " * 50, "--json")

    result = await run("context", appended["conversation_id"], "--budget", 1, exit_code=1)

    needed = result.stderr.partition("--budget ")[2].split()[0]
    prepared = await run("context", appended["conversation_id"], "--budget", needed, "--json")
    assert prepared["total_tokens"] <= int(needed)


async def test_status_says_both_serve(run):
    status = await run("status", "--json")

    assert (status["storage"], status["context"]) == ("serving", "serving")


async def test_tokens_are_counted(run):
    assert (await run("count-tokens", "hello world", "--json"))["token_counts"] == [2]


async def test_tenants_need_the_admin_key(run):
    result = await run("tenant", "list", exit_code=1)

    assert "ANNALS_ADMIN_KEY" in result.stderr
