"""The `annals` command on what belongs together: threads, tool calls, turns, relationships,
attachments, sessions, against the real services.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.cli import Run
from tests.support.storage import Tenant

from annals_client import user

MISSING = "01999999-9999-7999-8999-999999999999"
OWNED_BY = "check the id, and that the key belongs to its tenant"


async def appended(run: Run, room: str, *arguments: str) -> tuple[str, str]:
    """Append an event; the ids of the conversation and of the event."""
    stored = await run("append", room, *arguments, "--json")
    return stored["conversation_id"], stored["events"][0]["event_id"]


def refusal(says: str) -> str:
    return f"Error: {says}; {OWNED_BY}"


async def test_a_thread_is_followed_both_ways(run: Run) -> None:
    room, first = await appended(run, "new", "one")
    _, second = await appended(run, room, "two", "--parent", first)
    _, third = await appended(run, room, "three", "--parent", second)

    whole = await run("thread", second)
    up = await run("thread", third, "--direction", "ancestors", "--depth", "1", "--json")
    cut = await run("thread", first, "--depth", "1")

    assert [line.split()[0] for line in whole.stdout.splitlines()] == ["-1", "0", "+1"]
    assert [item["event"]["event_id"] for item in up["events"]] == [second, third]
    assert "--depth" in cut.stderr


async def test_a_long_event_is_read_in_chunks(run: Run, tenant: Tenant) -> None:
    words = "anchor " * 400
    stored = await tenant.client.events.append("", user(words))
    event_id = stored.events[0].event_id

    parts = await run("chunks", event_id, "--tokens", "100", "--overlap", "0", "--json")
    second = await run("chunks", event_id, "--tokens", "100", "--first", "1", "--limit", "1")

    assert "".join(part["text"] for part in parts["chunks"]) == words
    assert second.stdout.startswith("chunk 1: characters ")
    assert second.stderr.startswith("1 of ")


async def test_tool_calls_are_listed_with_their_results(run: Run) -> None:
    room, message = await appended(run, "new", "where is 4711?")
    _, call = await appended(
        *(run, room, "--tool-call", "c:1", "--tool", "find", "--parent", message, '{"id": 4711}')
    )
    await run("append", room, "--tool-result", "c:1", "--failed", "not found")

    listed = await run("tool-calls", message)
    by_event = await run("tool-call", call, "--json")
    by_call = await run("tool-call", f"{room}:c:1", "--json")

    assert listed.stdout.splitlines()[1] == "\t".join(
        (call, "c:1", "find", '{"id": 4711}', "failed: not found")
    )
    assert by_event == by_call
    assert (by_event["message_event_id"], by_event["call"]["event_id"]) == (message, call)
    assert "result        failed: not found\n" in (await run("tool-call", call)).stdout


async def test_a_turn_is_stored_again_and_again(run: Run) -> None:
    whole = {"message": {"role": "ROLE_ASSISTANT", "content": "It was shipped."}, "model": "m"}
    stored = ("turn", "store", "turn-7", "--host-id", "thread-12")

    first = await run(*stored, "--role", "assistant", "--json", stdin="It was ship")
    again = await run(*stored, "--event", "-", stdin=json.dumps(whole))
    room = await run("conversation", "get", "--host-id", "thread-12", "--json")
    events = await run("list", room["conversation_id"], "--json")
    versions = await run("history", first["event"]["turn_key"], "--json")

    assert (first["created"], first["observation_version"]) == (True, 1)
    assert "created       no\n" in again.stdout
    assert [(event["message"]["content"], event["model"]) for event in events] == [
        ("It was shipped.", "m")
    ]
    assert len(versions) == 2


async def test_relationships_are_made_listed_and_removed(run: Run) -> None:
    room, first = await appended(run, "new", "order 4711")
    _, second = await appended(run, room, "no, 4712")
    ends = (f"event:{second}", f"event:{first}")

    made = await run("relationship", "create", "corrects", *ends, "--score", "0.5", "--json")
    await run("relationship", "create", "refers-to", f"conversation:{room}", "external:a:b")
    listed = await run("relationship", "list", f"event:{first}", "--end", "target")
    none = await run("relationship", "list", f"event:{first}", "--end", "source", "--json")
    other = await run("relationship", "list", "external:a:b", "--type", "refers-to", "--json")
    types = await run("relationship", "types")
    itself = await run("relationship", "create", "supersedes", ends[0], ends[0], exit_code=1)
    await run("relationship", "delete", made["relationship_id"])
    again = await run("relationship", "delete", made["relationship_id"], exit_code=1)

    assert listed.stdout.splitlines()[1].split("\t")[:6] == [
        *(made["relationship_id"], ends[0], made["label"], ends[1], "corrects", "0.500")
    ]
    assert none == []
    assert [(item["label"], item["target"]["id"]) for item in other] == [("discusses", "a:b")]
    assert "part-of\tevent\tis a message of\tconversation\t" in types.stdout
    assert itself.error == "Error: relationship.target.id: must not be the source itself"
    assert again.error == refusal(f"no relationship {made['relationship_id']}")


async def test_attachments_are_registered_shown_and_listed(run: Run) -> None:
    room, event_id = await appended(run, "new", "see the plan")

    made = await run(
        *("attachment", "create", room, "s3://bucket/plan.png", "--event", event_id),
        *("--media-type", "image/png", "--size", "12", "--metadata", '{"page": 1}', "--json"),
    )
    shown = await run("attachment", "show", made["attachment_id"], "--json")
    listed = await run("attachment", "list", room)
    joined = await run("relationship", "list", f"event:{event_id}", "--json")

    assert shown == made
    row = "\t".join((made["attachment_id"], "s3://bucket/plan.png", "image/png", "12", ""))
    assert listed.stdout.splitlines()[1].startswith(row)
    assert [item["type"] for item in joined] == ["RELATIONSHIP_TYPE_EMBEDS"]


async def test_an_archived_conversation_comes_back(run: Run) -> None:
    room, _ = await appended(run, "new", "one")

    archived = await run("conversation", "archive", room, "--json")
    refused = await run("append", room, "two", exit_code=1)
    active = await run("conversation", "update", room, "--status", "active", "--json")
    await run("append", room, "two")

    assert archived["status"] == "CONVERSATION_STATUS_ARCHIVED"
    assert archived["archive_time"]
    assert "set its status to ACTIVE" in refused.error
    assert "archive_time" not in active


async def test_a_session_is_merged_into_its_user(run: Run) -> None:
    made = await run("conversation", "create", "--session", "s-1", "--json")
    before = await run("conversation", "current", "--session", "s-1", "--json")

    merged = await run("conversation", "merge-session", "s-1", "ann", "--json")
    after = await run("conversation", "current", "--user", "ann", "--json")
    taken = await run("conversation", "merge-session", "s-1", "bob", exit_code=1)

    assert (merged["moved_count"], merged["user_id"]) == ("1", "ann")
    ids = [item["conversation_id"] for item in (made, before, after)]
    assert len(set(ids)) == 1
    assert taken.error == ("Error: session s-1 was merged into another user; begin a new session")


_USE = "use one of --role, --tool-call, --tool-result, --note, --error and --event, not several"
_KINDS = "KIND is one of event, conversation, memory, attachment, external"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (("thread", MISSING), 1, refusal(f"no event {MISSING}")),
        (("thread",), 2, "Error: Missing argument 'EVENT_ID'."),
        (
            ("thread", MISSING, "--direction", "up"),
            2,
            (
                "Error: Invalid value for '--direction': 'up' is not one of "
                "'ancestors', 'descendants', 'both'."
            ),
        ),
        (
            ("thread", MISSING, "--depth", "0"),
            2,
            "Error: Invalid value for '--depth': 0 is not in the range 1<=x<=1000.",
        ),
        (("chunks", MISSING), 1, refusal(f"no event {MISSING}")),
        (
            ("chunks", MISSING, "--tokens", "9"),
            2,
            "Error: Invalid value for '--tokens': 9 is not in the range 100<=x<=100000.",
        ),
        (("tool-calls", MISSING), 1, refusal(f"no event {MISSING}")),
        (("tool-call", MISSING), 1, refusal(f"no event {MISSING}")),
        (("tool-call", f"{MISSING}:c1"), 1, refusal(f"no conversation {MISSING}")),
        (("turn", "store"), 2, "Error: Missing argument 'TURN_ID'."),
        (
            ("turn", "store", "t", "x", "--conversation", MISSING),
            1,
            refusal(f"no conversation {MISSING}"),
        ),
        (("turn", "store", "t", "--event", "{}", "--note"), 2, f"Error: {_USE}"),
        (
            ("turn", "store", "t", "x", "--event", "{}"),
            2,
            "Error: --event holds the whole event; put TEXT and the rest into it",
        ),
        (
            ("relationship", "list", "event"),
            2,
            f"Error: Invalid value for 'NODE': 'event' is not KIND:ID; {_KINDS}",
        ),
        (
            ("relationship", "list", "robot:1"),
            2,
            f"Error: Invalid value for 'NODE': 'robot:1' is not KIND:ID; {_KINDS}",
        ),
        (
            ("relationship", "create", "corrects", f"event:{MISSING}", "external:a"),
            1,
            refusal(f"no event {MISSING}"),
        ),
        (
            ("relationship", "create", "likes", "external:a", "external:b"),
            2,
            (
                "Error: Invalid value for 'TYPE': 'likes' is not one of 'part-of', 'refers-to', "
                "'embeds', 'corrects', 'settles', 'duplicate-of', 'depends-on', 'supersedes', "
                "'follow-up', 'related', 'duplicate'."
            ),
        ),
        (("attachment", "show", MISSING), 1, refusal(f"no attachment {MISSING}")),
        (
            ("attachment", "create", MISSING, "s3://b/k"),
            1,
            refusal(f"no conversation {MISSING}"),
        ),
        (("attachment", "create", MISSING), 2, "Error: Missing argument 'URI'."),
        (("conversation", "archive", MISSING), 1, refusal(f"no conversation {MISSING}")),
        (("conversation", "get"), 2, "Error: name a conversation or --host-id, one of them"),
        (("conversation", "current"), 2, "Error: whose? name --user or --session"),
        (
            ("conversation", "current", "--user", "nobody"),
            1,
            refusal("no conversation active of nobody"),
        ),
        (
            ("conversation", "merge-session", "s-1"),
            1,
            "Error: user_id: is required: 1–256 characters",
        ),
    ],
)
async def test_wrong_use_says_what_is_wrong(
    run: Run, arguments: tuple[Any, ...], exit_code: int, says: str
) -> None:
    failed = await run(*arguments, exit_code=exit_code)

    assert failed.error == says


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("turn", "store", "t", "--event", "{"), "'--event': is no NewEvent as JSON: Failed to "),
        (
            ("append", "new", "--event", '{"mesage": {}}'),
            "'--event': is no NewEvent as JSON: Message type ",
        ),
        (
            ("agent", "create", "a", "--context-injection", '{"include_all": true}'),
            "'--context-injection': is no ContextInjection as JSON: Message type ",
        ),
    ],
)
async def test_json_that_does_not_fit_says_why(
    run: Run, arguments: tuple[str, ...], says: str
) -> None:
    failed = await run(*arguments, exit_code=2)

    assert failed.error.startswith(f"Error: Invalid value for {says}")
