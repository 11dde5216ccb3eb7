"""`annals memory`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from annals.storage.v1 import resources_pb2 as res
from annals_client.cli.output import (
    moment,
    one_line,
    print_fields,
    print_json,
    print_json_array,
    print_table,
)
from annals_client.cli.parameters import POSITIVE_INT32, JsonObject
from annals_client.cli.state import State, json_option, pass_state

_tag = click.option("--tag", "tags", multiple=True, help="May be repeated.")


@click.group()
def memory() -> None:
    """Store, list, find and delete statements worth keeping."""


@memory.command()
@click.argument("conversation")
@click.argument("content", default="-")
@_tag
@click.option("--metadata", type=JsonObject(), help="Your own data: a JSON object.")
@click.option("--idempotency-key", default="", help="The same key and text store nothing twice.")
@json_option
@pass_state
def store(state: State, /, conversation: str, content: str, **fields: Any) -> None:
    """Store CONTENT (`-`: stdin) as a memory of CONVERSATION (`new` creates one).

    \b
    Example:
      annals memory store 0199c7a2-… "Prefers window seats." --tag travel
    """
    target = "" if conversation == "new" else conversation
    words = sys.stdin.read() if content == "-" else content
    stored = state.client().memories.store(words, conversation_id=target, **fields)
    _print(state, stored.memory)


@memory.command("list")
@click.option("--conversation", "conversation_id", default="", help="Only of this one.")
@_tag
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def list_memories(
    state: State, *, conversation_id: str, tags: Sequence[str], limit: int | None
) -> None:
    """List memories with all of these tags, newest first."""
    found = state.client().memories.list(conversation_id=conversation_id, tags=tags, limit=limit)
    if state.as_json:
        print_json_array(found)
        return
    print_table(("memory", "tags", "created", "content"), map(_row, found))


@memory.command()
@click.argument("query")
@click.option("--conversation", "conversation_ids", multiple=True, help="Only in this one.")
@_tag
@click.option("--limit", "top_k", type=click.IntRange(1, 1000), default=5, show_default=True)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Least similarity.",
)
@click.option("--fresh", is_flag=True, help="Wait for what was just stored.")
@json_option
@pass_state
def search(state: State, /, query: str, *, fresh: bool, **conditions: Any) -> None:
    """Find memories by meaning, most similar first."""
    answer = state.client().memories.search(
        query, freshness="read-your-writes" if fresh else "eventual", **conditions
    )
    if state.as_json:
        print_json(answer)
        return
    rows = ((f"{hit.similarity:.3f}", *_row(hit.memory)) for hit in answer.hits)
    print_table(("similarity", "memory", "tags", "created", "content"), rows)
    if answer.unindexed_count:
        click.echo(f"{answer.unindexed_count} memories wait to be indexed", err=True)


@memory.command()
@click.argument("memory_ids", nargs=-1, required=True)
@pass_state
def delete(state: State, memory_ids: Sequence[str]) -> None:
    """Delete memories for good."""
    client = state.client()
    for memory_id in memory_ids:
        client.memories.delete(memory_id)
        click.echo(f"{memory_id} deleted", err=True)


def _print(state: State, item: res.Memory) -> None:
    if state.as_json:
        print_json(item)
        return
    print_fields(
        {
            "memory": item.memory_id,
            "conversation": item.conversation_id,
            "tags": ", ".join(item.tags),
            "version": item.version,
            "created": moment(item.create_time),
            "content": item.content,
        }
    )


def _row(item: res.Memory) -> tuple[object, ...]:
    tags, content = ", ".join(item.tags), one_line(item.content, 80)
    return (item.memory_id, tags, moment(item.create_time), content)
