"""Steps and retrieval from the command line."""

from __future__ import annotations

import json

from tests.support.cli import Run


async def test_a_step_reads_the_answer_of_the_last_one(run: Run) -> None:
    stored = await run("append", "new", "The anchor is in shed seven.", "--json")
    await run("append", stored["conversation_id"], "Thank you.", "--json")
    prepared = await run("context", stored["conversation_id"], "--budget", 200, "--json")

    stubbed = await run("collapse", "-", "#1", "--json", stdin=json.dumps(prepared))
    shown = await run("expand", "-", "#1", stdin=json.dumps(stubbed))
    focused = await run("focus", prepared["view"], "anchor", "--json")

    assert stubbed["changes"] == [
        {"handle": "#1", "before": "DETAIL_LEVEL_FULL", "after": "DETAIL_LEVEL_STUB"}
    ]
    assert "shed seven" in shown.stdout
    assert "#1\tstub\tfull" in shown.stdout
    assert focused["context"]["view"]
    refused = await run("expand", "-", "#1", stdin="{}", exit_code=2)
    assert "no answer with a view" in refused.stderr


async def test_what_bears_on_a_query_is_printed(run: Run) -> None:
    stored = await run("append", "new", "The anchor is in shed seven.", "--json")
    conversation_id = stored["conversation_id"]
    await run("search", "anchor", "--conversation", conversation_id, "--fresh", "--json")

    snippets = await run("snippets", "Where is the anchor?", "--conversation", conversation_id)
    whole = await run("retrieve", "Where is the anchor?", "--limit", 1)
    others = await run("across", "Where is the anchor?", "--scope", "tenant", "--json")

    assert "user: The anchor is in shed seven." in snippets.stdout
    assert "tokens" in snippets.stderr
    assert f"{conversation_id}#1" in whole.stdout
    assert others["conversations"][0]["conversation_id"] == conversation_id
