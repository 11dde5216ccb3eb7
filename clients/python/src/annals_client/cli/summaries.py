"""`annals summary`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from annals.storage.v1 import summary_service_pb2 as pb
from annals_client.cli.output import one_line, print_json, print_json_array, print_table
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name, enum_names

LEVELS = enum_names(pb.SummaryLevel, "SUMMARY_LEVEL_")
DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]
_level = click.option(
    "--level", type=click.Choice(LEVELS), default="standard", show_default=True, help="How much."
)
_start = click.option("--start", type=click.DateTime(DATES), help="Only what happened from then.")
_end = click.option("--end", type=click.DateTime(DATES), help="Only what happened before then.")
_max_tokens = click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens at most.")


@click.group()
def summary() -> None:
    """Ask for summaries, make, list and delete them."""


@summary.command()
@click.argument("query")
@click.option("--conversation", "conversation_ids", multiple=True, help="Only of this one.")
@_start
@_end
@_level
@_max_tokens
@json_option
@pass_state
def about(state: State, /, query: str, *, max_tokens: int | None, **fields: Any) -> None:
    """Print the summaries that bear on QUERY, most relevant first.

    \b
    Example:
      annals summary about "What did we promise?" --max-tokens 500
    """
    answer = state.client().summaries.about(query, max_tokens=max_tokens or 0, **fields)
    if state.as_json:
        print_json(answer)
        return
    click.echo(answer.text)
    left_out = f"{answer.omitted_count} left out" if answer.omitted_count else ""
    _note(answer.total_tokens, left_out, *answer.degraded)


@summary.command()
@click.argument("conversation_id")
@click.option("--first", "first_seq", type=click.IntRange(min=1), help="From this event on.")
@click.option("--last", "last_seq", type=click.IntRange(min=1), help="Up to this event.")
@click.option("--event", "event_ids", multiple=True, help="Only of these events.")
@_start
@_end
@click.option("--focus", "focus_topics", multiple=True, help="What to keep most of.")
@_level
@_max_tokens
@json_option
@pass_state
def make(state: State, /, conversation_id: str, **fields: Any) -> None:
    """Summarise a part of a conversation, or the whole.

    \b
    Example:
      annals summary make 0199c7a2-… --first 1 --last 200 --level detailed
    """
    given = {name: value for name, value in fields.items() if value is not None}
    made = state.client().summaries.make(conversation_id, **given)
    if state.as_json:
        print_json(made)
        return
    click.echo(made.text)
    _note(
        made.total_tokens,
        f"#{made.first_seq}-#{made.last_seq}",
        f"quality {made.quality_score:.2f}",
        *made.degraded,
    )


@summary.command("list")
@click.argument("conversation_id")
@click.option(
    "--level", "levels", type=click.Choice(LEVELS), multiple=True, help="May be repeated."
)
@click.option(
    "--branch", type=click.IntRange(min=1), default=None, help="Default: the current one."
)
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@json_option
@pass_state
def list_summaries(state: State, /, conversation_id: str, branch: int | None, **query: Any) -> None:
    """List the summaries that are kept of a conversation."""
    found = state.client().summaries.list(conversation_id, branch=branch or 0, **query)
    if state.as_json:
        print_json_array(found)
        return
    print_table(("summary", "range", "level", "quality", "tokens", "text"), map(_row, found))


@summary.command()
@click.argument("summary_ids", nargs=-1, required=True)
@pass_state
def delete(state: State, summary_ids: Sequence[str]) -> None:
    """Delete summaries for good. What is missing is made again."""
    client = state.client()
    for summary_id in summary_ids:
        client.summaries.delete(summary_id)
        click.echo(f"{summary_id} deleted", err=True)


def _note(tokens: int, *parts: str) -> None:
    click.echo(", ".join((f"{tokens} tokens", *filter(None, parts))), err=True)


def _row(item: pb.Summary) -> tuple[object, ...]:
    level = enum_name(pb.SummaryLevel, "SUMMARY_LEVEL_", item.level)
    place = f"#{item.first_seq}-#{item.last_seq}"
    quality = f"{item.quality_score:.2f}"
    return item.summary_id, place, level, quality, item.token_count, one_line(item.text, 80)
