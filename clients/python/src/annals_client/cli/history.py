"""`annals edit`, `delete`, `restore`, `history`, `period`: what becomes of events."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import build
from annals_client.cli.events import print_event, who_and_text
from annals_client.cli.output import (
    moment,
    one_line,
    print_fields,
    print_json,
    print_json_array,
    print_table,
    stdout_console,
)
from annals_client.cli.parameters import NATURAL_INT32, POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.client import AnnalsClient
from annals_client.values import enum_name, enum_names

_TYPES = click.Choice(enum_names(res.EventType, "EVENT_TYPE_"))


@click.command()
@click.argument("event_id")
@click.argument("text", default="-")
@click.option(
    "--version", "expected_version", type=NATURAL_INT32, default=0, help="Only at this version."
)
@json_option
@pass_state
def edit(state: State, event_id: str, text: str, expected_version: int) -> None:
    """Replace the words of an event by TEXT (`-`: stdin). The former ones stay in its history.

    \b
    Examples:
      annals edit 0199c7a2-… "Where is my order 4712?"
      annals history 0199c7a2-…
    """
    client = state.client()
    words = sys.stdin.read() if text == "-" else text
    content = _with_words(client.events.get(event_id), words)
    edited = client.events.edit(event_id, content, expected_version=expected_version)
    _print(state, edited.event)


@click.command()
@click.argument("event_ids", nargs=-1, required=True)
@json_option
@pass_state
def delete(state: State, event_ids: Sequence[str]) -> None:
    """Hide events until they are restored. Conversations: `annals conversation delete`."""
    client: AnnalsClient = state.client()
    for event_id in event_ids:
        _print(state, client.events.delete(event_id))


@click.command()
@click.argument("event_id")
@json_option
@pass_state
def restore(state: State, event_id: str) -> None:
    """Bring a deleted event back."""
    _print(state, state.client().events.restore(event_id))


@click.command()
@click.argument("event")
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def history(state: State, event: str, limit: int | None) -> None:
    """Show every version of an EVENT, newest first: who made it, when and why.

    EVENT is an id, or the key of a turn: CONVERSATION:TURN.
    """
    event_id, turn_key = ("", event) if ":" in event else (event, "")
    found = state.client().events.observations(event_id, turn_key=turn_key, limit=limit)
    if state.as_json:
        print_json_array(found)
        return
    print_table(("version", "kind", "when", "by", "words"), map(_row, found))


@click.command()
@click.argument("conversation_id")
@click.argument("when", default="today")
@click.option("--timezone", default="", metavar="NAME", help="Such as Europe/Zurich; else UTC.")
@click.option("--type", "types", multiple=True, type=_TYPES, help="Only of this type.")
@click.option("--branch", type=POSITIVE_INT32, default=None, help="Else the current one.")
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@click.option("--full", is_flag=True, help="Every word, not one line each.")
@json_option
@pass_state
def period(
    state: State,
    *,
    conversation_id: str,
    when: str,
    timezone: str,
    types: Sequence[str],
    branch: int | None,
    limit: int | None,
    full: bool,
) -> None:
    """List the events of a period: today, yesterday, this_week, this_month, this_year, or
    ISO 8601 such as 2025-10-24, 2025-W43, 2025-10 or 2025-10-01/2025-10-15.
    """
    found = state.client().events.period(
        conversation_id, when, timezone=timezone, types=types, branch=branch or 0, limit=limit
    )
    if state.as_json:
        print_json_array(found)
        return
    console = stdout_console()
    for event in found:
        print_event(console, event, full=full)


def _with_words(event: res.Event, words: str) -> pb.NewEvent:
    """The body of an event with other words."""
    kind = event.WhichOneof("body")
    if kind == "message":
        message = event.message
        return build.message(message.role, words, author_name=message.author_name)
    if kind == "tool_call":
        return build.tool_call(event.tool_call.tool_call_id, event.tool_call.tool_name, words)
    if kind == "tool_result":
        result = event.tool_result
        return build.tool_result(
            result.tool_call_id, words, tool_name=result.tool_name, is_error=result.is_error
        )
    if kind == "error":
        return build.error(event.error.error_type, words)
    return build.system(words)


def _print(state: State, event: res.Event) -> None:
    if state.as_json:
        print_json(event)
        return
    print_fields(
        {
            "event": event.event_id,
            "conversation": event.conversation_id,
            "seq": event.seq,
            "branch": event.branch,
            "version": event.version,
            "edited": moment(event.edit_time),
            "deleted": moment(event.delete_time),
            "words": one_line(who_and_text(event)[1], 200),
        }
    )


def _row(observation: pb.Observation) -> tuple[object, ...]:
    kind = enum_name(pb.ObservationKind, "OBSERVATION_KIND_", observation.kind)
    actor = observation.actor
    by = actor.user_id or actor.session_id or actor.api_key_id
    words = one_line(who_and_text(observation.event)[1], 80)
    return (observation.version, kind, moment(observation.create_time), by, words)
