"""`annals thread`, `chunks`, `tool-calls` and `tool-call`: what belongs to an event."""

from __future__ import annotations

import click

from annals.storage.v1 import event_service_pb2 as pb
from annals_client.cli.events import print_event
from annals_client.cli.output import (
    one_line,
    print_fields,
    print_json,
    print_json_array,
    print_table,
    stdout_console,
)
from annals_client.cli.parameters import NATURAL_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_names

_DIRECTIONS = click.Choice(enum_names(pb.ThreadDirection, "THREAD_DIRECTION_"))


@click.command()
@click.argument("event_id")
@click.option(
    "--direction",
    type=_DIRECTIONS,
    default="both",
    show_default=True,
    help="What the event answers, what answers it, or both.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    help="Links to follow, each way.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="At most so many events, nearest first.",
)
@click.option("--full", is_flag=True, help="Every word, not one line each.")
@json_option
@pass_state
def thread(
    state: State, *, event_id: str, direction: str, depth: int, limit: int, full: bool
) -> None:
    """Follow the parent links of an event; `annals append --parent` makes them.

    The number before each event counts the links: below 0 what EVENT_ID answers, above 0 what
    answers it.
    """
    found = state.client().events.thread(event_id, direction=direction, depth=depth, limit=limit)
    if state.as_json:
        print_json(found)
        return
    console = stdout_console()
    for item in found.events:
        lead = f"{item.distance:+d}  " if item.distance else "0  "
        print_event(console, item.event, full=full, lead=f"{lead:>4}")
    if found.truncated:
        click.echo("there is more; allow it with --depth and --limit", err=True)


@click.command()
@click.argument("event_id")
@click.option(
    "--tokens",
    "chunk_tokens",
    type=click.IntRange(100, 100_000),
    default=4_000,
    show_default=True,
    help="Tokens of a chunk, in the encoding o200k_base.",
)
@click.option(
    "--overlap",
    "overlap_tokens",
    type=NATURAL_INT32,
    help="Tokens a chunk repeats of the one before (default 200, or a twentieth if less).",
)
@click.option(
    "--first",
    "chunk_index",
    type=NATURAL_INT32,
    default=0,
    show_default=True,
    help="First chunk wanted, from 0.",
)
@click.option("--limit", type=click.IntRange(1, 1000), help="At most so many chunks.")
@json_option
@pass_state
def chunks(
    state: State,
    *,
    event_id: str,
    chunk_tokens: int,
    overlap_tokens: int | None,
    chunk_index: int,
    limit: int | None,
) -> None:
    """Print a long event in parts, as large as a reader can take."""
    found = state.client().events.chunks(
        event_id,
        chunk_tokens=chunk_tokens,
        overlap_tokens=overlap_tokens,
        chunk_index=chunk_index,
        limit=limit or 0,
    )
    if state.as_json:
        print_json(found)
        return
    for part in found.chunks:
        click.echo(
            f"chunk {part.chunk_index}: characters {part.start_char}-{part.end_char}, "
            f"{part.token_count} tokens\n{part.text}\n"
        )
    click.echo(f"{len(found.chunks)} of {found.chunk_count} chunks", err=True)


@click.command("tool-calls")
@click.argument("message_event_id")
@json_option
@pass_state
def tool_calls(state: State, message_event_id: str) -> None:
    """List the tool calls that a message triggered, with their results.

    A call belongs to the message it answers: `annals append --parent MESSAGE --tool-call …`.
    """
    found = state.client().events.tool_calls(message_event_id)
    if state.as_json:
        print_json_array(found)
        return
    columns = ("event", "call", "tool", "input", "result")
    print_table(columns, ([_fields(it)[name] for name in columns] for it in found))


@click.command("tool-call")
@click.argument("call")
@json_option
@pass_state
def tool_call(state: State, call: str) -> None:
    """Show one tool call with its result.

    CALL is the event of either, or the provider's id of the call: CONVERSATION:CALL_ID.
    """
    conversation_id, colon, tool_call_id = call.partition(":")
    read = state.client().events.tool_call
    if colon:
        found = read(conversation_id=conversation_id, tool_call_id=tool_call_id)
    else:
        found = read(call)
    print_json(found) if state.as_json else print_fields(_fields(found))


def _fields(item: pb.ToolCall) -> dict[str, object]:
    call, result = item.call.tool_call, item.result.tool_result
    failed = "failed: " if result.is_error else ""
    return {
        "event": item.call.event_id,
        "conversation": item.call.conversation_id,
        "message": item.message_event_id,
        "call": call.tool_call_id,
        "tool": call.tool_name,
        "input": one_line(call.input_json, 200),
        "result event": item.result.event_id,
        "result": failed + one_line(result.result, 200),
    }
