"""`annals summary` against both real services."""

from __future__ import annotations

from typing import Any


async def test_summaries_are_made_listed_asked_for_and_deleted(run: Any) -> None:
    await run("append", "new", "--role", "user", "The ferry to Bergen leaves at noon.")
    room = (await run("conversation", "list", "--json"))[0]["conversation_id"]

    made = await run("summary", "make", room, "--level", "brief")
    asked = await run("summary", "about", "ferry", "--conversation", room)
    kept = await run("summary", "list", room, "--level", "brief", "--json")
    listed = await run("summary", "list", room)
    await run("summary", "delete", kept[0]["summary_id"])
    refused = await run("summary", "about", " ", "--conversation", room, exit_code=1)

    assert "The ferry to Bergen leaves at noon." in made.stdout
    assert "#1-#1" in made.stderr
    assert f"Summary of #1-#1 of conversation {room}:" in asked.stdout
    assert [item["level"] for item in kept] == ["SUMMARY_LEVEL_BRIEF"]
    assert "detailed" in listed.stdout
    assert "query" in refused.error
