"""`annals append` and `annals list`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.cli.output import (
    moment,
    one_line,
    print_fields,
    print_json,
    print_json_array,
    stdout_console,
    visible,
)
from annals_client.cli.parameters import NATURAL_INT64, POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.cli.words import ROLES, Words, event_options
from annals_client.values import enum_name, enum_names

_TYPES = click.Choice(enum_names(res.EventType, "EVENT_TYPE_"))
_STYLES = {"user": "cyan", "assistant": "green", "error": "red"}


@click.command()
@click.argument("conversation")
@click.argument("text", default=None, required=False)
@event_options
@click.option("--expected-last-seq", type=NATURAL_INT64, help="Store only if the last seq is this.")
@json_option
@pass_state
def append(
    state: State,
    /,
    conversation: str,
    text: str | None,
    expected_last_seq: int | None,
    **words: Any,
) -> None:
    """Append one event to CONVERSATION (`new` creates one). No TEXT, or `-`, reads stdin.

    \b
    Examples:
      annals append new --role user "Where is my order 4711?"
      annals append 0199c7a2-… --tool-call call_1 --tool find_order '{"id": 4711}'
      annals append 0199c7a2-… --tool-result call_1 '{"status": "shipped"}'
      annals append 0199c7a2-… --role assistant --idempotency-key turn-2 < answer.txt
    """
    _store(state, conversation, Words(**words).event(text), expected_last_seq)


@click.command("list")
@click.argument("conversation_id")
@click.option("--last", type=POSITIVE_INT32, help="Only the newest N events.")
@click.option("--type", "types", multiple=True, type=_TYPES, help="Only of this type.")
@click.option("--role", "roles", multiple=True, type=ROLES, help="Only messages of this role.")
@click.option("--tool", "tool_names", multiple=True, help="Only calls and results of this tool.")
@click.option("--after", "after_seq", type=NATURAL_INT64, default=0, help="Only seq above this.")
@click.option("--full", is_flag=True, help="Every word, not one line each.")
@json_option
@pass_state
def list_events(
    state: State,
    *,
    conversation_id: str,
    last: int | None,
    types: Sequence[str],
    roles: Sequence[str],
    tool_names: Sequence[str],
    after_seq: int,
    full: bool,
) -> None:
    """List the events of a conversation in order."""
    found: Iterable[res.Event] = state.client().events.list(
        conversation_id,
        after_seq=after_seq,
        types=types,
        roles=roles,
        tool_names=tool_names,
        order="descending" if last else "ascending",
        limit=last,
    )
    ordered = reversed(list(found)) if last else found
    if state.as_json:
        print_json_array(ordered)
        return
    console = stdout_console()
    for event in ordered:
        print_event(console, event, full=full)


PIPED_CHARS = 400
"""Of an event on one line where no terminal sets the width."""


def print_event(console: Console, event: res.Event, *, full: bool = False, lead: str = "") -> None:
    """Print an event on one line, or every word of it."""
    who, text = who_and_text(event)
    head = f"{lead}#{event.seq}  {moment(event.event_time)}  {who}: "
    if not console.is_terminal:
        click.echo(head + (text if full else one_line(text, PIPED_CHARS)))
        return
    chars = max(20, console.width - len(head))
    shown = text if full else one_line(text, chars)
    style = _STYLES.get(who.partition(" ")[0], "")
    console.print(Text.assemble((head, f"bold {style}".strip()), shown), soft_wrap=True)


def who_and_text(event: res.Event) -> tuple[str, str]:
    """Who an event is from, on one line, and what it says; no terminal obeys either."""
    who, text = _who_and_text(event)
    return one_line(who, PIPED_CHARS), visible(text)


def _who_and_text(event: res.Event) -> tuple[str, str]:
    body = event.WhichOneof("body")
    if body == "message":
        role = enum_name(res.Role, "ROLE_", event.message.role)
        author = event.message.author_name
        return (f"{role} {author}" if author else role), event.message.content
    if body == "tool_call":
        call = event.tool_call
        return "tool call", f"{call.tool_name}({call.input_json}) [{call.tool_call_id}]"
    if body == "tool_result":
        result = event.tool_result
        failed = " failed" if result.is_error else ""
        return f"tool result{failed}", f"[{result.tool_call_id}] {result.result}"
    if body == "error":
        return "error", f"{event.error.error_type}: {event.error.error_message}"
    return "note", event.system.content


def _store(
    state: State, conversation: str, event: pb.NewEvent, expected_last_seq: int | None
) -> None:
    target = "" if conversation == "new" else conversation
    stored = state.client().events.append(target, event, expected_last_seq=expected_last_seq)
    if state.as_json:
        print_json(stored)
        return
    first = stored.events[0]
    print_fields(
        {
            "conversation": stored.conversation_id,
            "event": first.event_id,
            "seq": first.seq,
            "tokens": first.token_count,
            "replayed": "yes, stored before" if first.replayed else "",
        }
    )
