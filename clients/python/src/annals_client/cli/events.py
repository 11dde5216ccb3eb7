"""`annals append` and `annals list`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import build
from annals_client.cli.conversations import JsonObject
from annals_client.cli.output import (
    moment,
    one_line,
    print_fields,
    print_json,
    print_json_array,
    stdout_console,
)
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name, enum_names

_ROLES = click.Choice(enum_names(res.Role, "ROLE_"))
_TYPES = click.Choice(enum_names(res.EventType, "EVENT_TYPE_"))
_STYLES = {"user": "cyan", "assistant": "green", "error": "red"}


@dataclass(frozen=True, slots=True)
class Words:
    """What the options of `append` say about the event."""

    role: str | None
    author: str
    tool_call: str | None
    tool_result: str | None
    tool: str
    failed: bool
    note: bool
    error_type: str | None
    idempotency_key: str
    metadata: dict[str, Any] | None

    def __post_init__(self) -> None:
        kinds = (self.role, self.tool_call, self.tool_result, self.note or None, self.error_type)
        if sum(kind is not None for kind in kinds) > 1:
            raise click.UsageError(
                "use one of --role, --tool-call, --tool-result, --note and --error, not several"
            )

    def event(self, text: str) -> pb.NewEvent:
        """Build the event these options describe."""
        fields = self._fields()
        if self.tool_call is not None:
            return build.tool_call(self.tool_call, self.tool, text, **fields)
        if self.tool_result is not None:
            return build.tool_result(
                self.tool_result, text, tool_name=self.tool, is_error=self.failed, **fields
            )
        if self.error_type is not None:
            return build.error(self.error_type, text, **fields)
        if self.note:
            return build.system(text, **fields)
        return build.message(self.role or "user", text, author_name=self.author, **fields)

    def _fields(self) -> build.EventFields:
        fields = build.EventFields(idempotency_key=self.idempotency_key)
        if self.metadata is not None:
            fields["metadata"] = self.metadata
        return fields


@click.command()
@click.argument("conversation")
@click.argument("text", default="-")
@click.option("--role", type=_ROLES, help="Who says it (default user).")
@click.option("--author", default="", help="Name of the speaker.")
@click.option("--tool-call", metavar="ID", help="A call of --tool; TEXT is its JSON input.")
@click.option("--tool-result", metavar="ID", help="The answer to call ID; TEXT is the result.")
@click.option("--tool", default="", metavar="NAME", help="Name of the tool.")
@click.option("--failed", is_flag=True, help="The tool failed.")
@click.option("--note", is_flag=True, help="Something the application notes.")
@click.option("--error", "error_type", metavar="TYPE", help="A failure, such as rate_limit.")
@click.option("--idempotency-key", default="", help="The same key and text store nothing twice.")
@click.option("--metadata", type=JsonObject(), help="Your own data: a JSON object.")
@click.option("--expected-last-seq", type=int, help="Store only if the last seq is this.")
@json_option
@pass_state
def append(
    state: State, /, conversation: str, text: str, expected_last_seq: int | None, **words: Any
) -> None:
    """Append one event to CONVERSATION (`new` creates one). TEXT `-` is read from stdin.

    \b
    Examples:
      annals append new --role user "Where is my order 4711?"
      annals append 0199c7a2-… --tool-call call_1 --tool find_order '{"id": 4711}'
      annals append 0199c7a2-… --tool-result call_1 '{"status": "shipped"}'
      annals append 0199c7a2-… --role assistant --idempotency-key turn-2 < answer.txt
    """
    said = Words(**words)
    event = said.event(sys.stdin.read() if text == "-" else text)
    _store(state, conversation, event, expected_last_seq)


@click.command("list")
@click.argument("conversation_id")
@click.option("--last", type=click.IntRange(min=1), help="Only the newest N events.")
@click.option("--type", "types", multiple=True, type=_TYPES, help="Only of this type.")
@click.option("--role", "roles", multiple=True, type=_ROLES, help="Only messages of this role.")
@click.option("--tool", "tool_names", multiple=True, help="Only calls and results of this tool.")
@click.option("--after", "after_seq", type=int, default=0, help="Only seq above this.")
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
    """Who an event is from, and what it says."""
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
