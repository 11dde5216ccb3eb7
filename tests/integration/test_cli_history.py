"""The `annals` command on the history of conversations, against the real services."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from tests.support.cli import Run
from tests.support.storage import Tenant
from tests.support.valid_requests import logged_conversation

from annals.storage.v1 import resources_pb2 as res
from annals_client import assistant, user


async def said(tenant: Tenant, *words: str) -> tuple[str, list[str]]:
    """A conversation of these words, and the ids of its events."""
    stored = await tenant.client.events.append("", [user(text) for text in words])
    return stored.conversation_id, [event.event_id for event in stored.events]


def contents(events: Any) -> list[str]:
    return [event["message"]["content"] for event in events]


async def test_an_event_is_edited_deleted_restored_and_keeps_its_history(
    run: Run, tenant: Tenant
) -> None:
    room, [event_id] = await said(tenant, "order 4711")

    await run("edit", event_id, stdin="order 4712")
    stale = await run("edit", event_id, "x", "--version", "1", exit_code=1)
    await run("delete", event_id)
    hidden = await run("list", room, "--json")
    await run("restore", event_id)
    history = await run("history", event_id, "--json")

    assert "version" in stale.stderr
    assert hidden == []
    assert contents(await run("list", room, "--json")) == ["order 4712"]
    assert [item["kind"].removeprefix("OBSERVATION_KIND_") for item in history] == [
        "RESTORE",
        "DELETE",
        "EDIT",
        "STORE",
    ]
    assert contents(item["event"] for item in history)[-1] == "order 4711"
    assert "order 4711" in (await run("history", event_id)).stdout


async def test_a_conversation_is_reverted_branched_and_forked(run: Run, tenant: Tenant) -> None:
    room, ids = await said(tenant, "one", "two", "three")

    reverted = await run("revert", room, ids[0], "--name", "again", "--json")
    await run("append", room, "other")
    forked = await run("fork", room, "--title", "copy", "--json")
    aside = await run("branch", room, ids[0], "--stay", "--json")
    branches = await run("branches", room, "--json")
    selected = await run("branch", room, "--select", "1", "--json")
    wrong = await run("branch", room, ids[0], "--select", "1", exit_code=2)

    assert (reverted["branch"], reverted["display_name"]) == (2, "again")
    assert [item["current"] for item in branches] == [False, True, False]
    assert aside["branch"] == 3
    assert selected["current"]
    assert "--select" in wrong.stderr
    assert contents(await run("list", room, "--json")) == ["one", "two", "three"]
    copy = forked["conversation"]["conversation_id"]
    assert contents(await run("list", copy, "--json")) == ["one", "other"]


async def test_a_period_is_listed(run: Run, tenant: Tenant) -> None:
    room, _ = await said(tenant, "now")

    assert contents(await run("period", room, "this_year", "--json")) == ["now"]
    assert await run("period", room, "2001-01", "--timezone", "Europe/Zurich", "--json") == []
    wrong = await run("period", room, "someday", exit_code=1)
    assert "period" in wrong.stderr


async def test_memories_are_kept_found_and_deleted(run: Run, tenant: Tenant) -> None:
    kept = await run(
        *("memory", "store", "new", "The customer prefers window seats."),
        *("--tag", "travel", "--json"),
    )

    found = await run("memory", "search", "which seats are preferred?", "--fresh", "--json")
    listed = await run("memory", "list", "--tag", "travel", "--json")
    await run("memory", "delete", kept["memory_id"])

    assert [hit["memory"]["memory_id"] for hit in found["hits"]] == [kept["memory_id"]]
    assert [item["memory_id"] for item in listed] == [kept["memory_id"]]
    assert await run("memory", "list", "--json") == []


async def test_an_export_comes_back_as_it_was(run: Run, tenant: Tenant, tmp_path: Path) -> None:
    room, ids = await said(tenant, "one", "two")
    await tenant.client.events.revert(room, ids[0])

    written = await run("export", room, "-o", "chat.jsonl")
    skipped = await run("import", "chat.jsonl", "--json")
    await tenant.client.erasure.conversation(room)
    stored = await run("import", "chat.jsonl", "--json")
    await run("export", room, "-o", "again.jsonl")

    assert "chat.jsonl" in written.stderr
    assert (skipped["conversations"], skipped["skipped_conversations"]) == (0, 1)
    assert (skipped["conversation_ids"], skipped["events"]) == ([room], 0)
    assert (stored["conversations"], stored["skipped_conversations"]) == (1, 0)
    assert (stored["conversation_ids"], stored["events"]) == ([room], 2)
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "chat.jsonl").read_bytes()


async def test_a_packed_export_is_imported(run: Run, tenant: Tenant, tmp_path: Path) -> None:
    room, _ = await said(tenant, "one")
    await run("export", room, "--output", tmp_path / "one.jsonl")
    packed = tmp_path / "one.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "one.jsonl").read_bytes()))

    done = await run("import", packed, "--json")

    assert done["skipped_conversations"] == 1


async def test_no_terminal_obeys_what_was_stored(run: Run, tenant: Tenant) -> None:
    text = "evil \x1b]0;pwn\x07 \x1b[2J\x9b text\nsecond line"
    stored = await tenant.client.events.append("", [user(text, author_name="A\nB\x1b[31m")])
    room = stored.conversation_id
    await tenant.client.conversations.update(room, title="T\x1b[31m\x07")

    shown = [
        await run("list", room),
        await run("list", room, "--full"),
        await run("conversation", "get", room),
        await run("conversation", "list"),
    ]

    for printed in shown:
        assert not {"\x1b", "\x07", "\x9b"} & set(printed.stdout)
    assert "\\x1b[2J" in shown[0].stdout
    assert "second line" in shown[1].stdout
    assert "user A B" in shown[0].stdout


async def test_a_transcript_is_exported_to_stdout(run: Run, tenant: Tenant) -> None:
    room, _ = await said(tenant, "where is it?")

    assert "where is it?" in (await run("export", room, "--format", "markdown")).stdout


async def test_a_failed_export_leaves_no_file(run: Run, tmp_path: Path) -> None:
    missing = "01999999-9999-7999-8999-999999999999"

    failed = await run("export", missing, "-o", "chat.jsonl", exit_code=1)

    assert missing in failed.stderr
    assert not (tmp_path / "chat.jsonl").exists()


async def test_a_truncated_export_is_refused_whole(
    run: Run, tenant: Tenant, tmp_path: Path
) -> None:
    room, _ = await said(tenant, "one", "two")
    await run("export", room, "-o", "chat.jsonl")
    path = tmp_path / "chat.jsonl"
    path.write_bytes(path.read_bytes()[:-20])

    refused = await run("import", "chat.jsonl", exit_code=1)

    assert "line" in refused.stderr


async def test_an_export_as_json_is_not_imported(run: Run, tenant: Tenant) -> None:
    room, _ = await said(tenant, "one", "two")
    await run("export", room, "--format", "json", "-o", "chat.json")

    refused = await run("import", "chat.json", exit_code=1)
    forced = await run("import", "--format", "annals", "chat.json", exit_code=1)

    assert refused.stderr == (
        "Error: chat.json: is an export as JSON, which lacks branches and history; import takes "
        "JSON Lines exports: annals export CONVERSATION --format json-lines\n"
    )
    assert forced.stderr == refused.stderr


async def test_a_watch_prints_what_is_there_and_what_comes(run: Run, tenant: Tenant) -> None:
    room, _ = await said(tenant, "one", "two")

    seen = await run("watch", room, "--after", "0", "--limit", "2")
    wrong = await run("watch", exit_code=2)

    assert [line.partition("user: ")[2] for line in seen.stdout.splitlines()] == ["one", "two"]
    assert "--agent" in wrong.stderr


async def test_an_erasure_asks_first_and_is_verified(run: Run, tenant: Tenant) -> None:
    room, _ = await said(tenant, "secret")

    asked = await run("erase", "conversation", room, stdin="n\n", exit_code=1)
    still = await run("list", room, "--json")
    receipt = await run("erase", "conversation", room, "--yes", "--json")
    verified = await run("verify-erasure", receipt["receipt_id"], "--json")

    assert "cannot be undone" in asked.stderr
    assert contents(still) == ["secret"]
    assert {"kind": "events", "count": "1"} in receipt["counts"]
    assert verified["verified"]
    await run("list", room, exit_code=1)


async def test_usage_is_added_up(run: Run, tenant: Tenant) -> None:
    usage = res.Usage(input_tokens=7, output_tokens=2)
    await tenant.client.events.append("", [assistant("ok", model="m", usage=usage), user("x")])

    rows = await run("usage", "--by", "model", "--json")
    large = await run("usage", "--large", "2", "--json")

    assert [(row["model"], row["input_tokens"]) for row in rows] == [("m", "7")]
    assert [item["event_count"] for item in large] == ["2"]
    assert (await run("usage", "--by", "model")).stdout.splitlines()[1] == "m\t1\t7\t2\t0"


async def test_retention_is_set_shown_and_removed(run: Run, tenant: Tenant) -> None:
    await run("retention", "set", "--archive", "30", "--erase", "365")
    shown = await run("retention", "get", "--json")
    impossible = await run("retention", "set", "--archive", "30", "--erase", "7", exit_code=1)
    await run("retention", "delete")

    assert (shown["archive_after_days"], shown["erase_after_days"]) == (30, 365)
    assert "erase_after_days" in impossible.stderr
    assert await run("retention", "list", "--json") == []


async def test_the_client_does_the_rest(tenant: Tenant) -> None:
    """What the command has no words for."""
    client = tenant.client
    room, ids = await said(tenant, "one")
    turn = await client.events.store_turn("t1", user("first"), host_conversation_id="host-1")
    again = await client.events.store_turn("t1", user("second"), host_conversation_id="host-1")
    logged = await logged_conversation(tenant)
    await client.provider_logs.create(logged, "openai", request={"q": 1}, response={"a": 2})
    attachment = await client.attachments.create(room, "s3://b/k", event_id=ids[0])
    topic = await client.relationships.create(
        "refers-to", ("conversation", room), ("external", "a topic"), score=0.5
    )

    assert (turn.created, again.created, again.observation_version) == (True, False, 2)
    found = await client.conversations.get(host_conversation_id="host-1")
    assert found.conversation_id == turn.event.conversation_id
    key = turn.event.turn_key
    versions = [item.version async for item in client.events.observations(turn_key=key)]
    assert versions == [2, 1]
    assert [it.request_json async for it in client.provider_logs.list(logged)] == ['{"q": 1}']
    assert [it async for it in client.attachments.list(room)] == [attachment]
    related = [it.label async for it in client.relationships.list(("conversation", room))]
    assert related == [topic.label] == ["discusses"]
    assert len(await client.relationships.types()) > 10
    assert [it.event.event_id for it in (await client.events.thread(ids[0])).events] == ids
    assert (await client.events.chunks(ids[0])).chunk_count == 1
    assert (await client.conversations.archive(room)).HasField("archive_time")
