"""`annals search`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import search_service_pb2 as pb
from annals_client.cli.events import print_event
from annals_client.cli.output import print_json, stdout_console
from annals_client.cli.parameters import POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.cli.words import ROLES
from annals_client.values import enum_names

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_FILTERS = (
    click.option("--conversation", "conversation_ids", multiple=True, help="Only in this one."),
    click.option("--agent", "agent_ids", multiple=True, help="Only of this agent."),
    click.option("--user", "user_id", default="", help="Only of this user."),
    click.option("--session", "session_id", default="", help="Only of this session."),
    click.option(
        "--type",
        "types",
        multiple=True,
        type=click.Choice(enum_names(res.EventType, "EVENT_TYPE_")),
        help="Only of this type.",
    ),
    click.option("--role", "roles", multiple=True, type=ROLES, help="Only messages of this role."),
    click.option(
        "--tool", "tool_names", multiple=True, help="Only calls and results of this tool."
    ),
    click.option("--from", "start_time", type=click.DateTime(), help="At or after this (UTC)."),
    click.option("--to", "end_time", type=click.DateTime(), help="Before this (UTC)."),
    click.option("--exclude", "exclude_event_ids", multiple=True, help="Not this event."),
    click.option(
        "--branch",
        type=POSITIVE_INT32,
        help="Of the one conversation, else the current.",
    ),
    click.option("--all-branches", is_flag=True, help="Also what is out of view."),
)


def _filters(command: CommandT) -> CommandT:
    for option in reversed(_FILTERS):
        command = option(command)
    return command


@click.command()
@click.argument("query")
@_filters
@click.option(
    "--mode",
    type=click.Choice(enum_names(pb.SearchMode, "SEARCH_MODE_")),
    default="hybrid",
    show_default=True,
    help="By meaning and words, or by one of them.",
)
@click.option("--language", default="", help="Of the query: de, pt-BR, …  [default: told from it]")
@click.option(
    "--group-by",
    type=click.Choice(enum_names(pb.SearchGrouping, "SEARCH_GROUPING_")),
    default="event",
    show_default=True,
    help="What a hit stands for.",
)
@click.option(
    "--diversity",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="How much near-duplicates are moved down.",
)
@click.option(
    "--reference-time",
    type=click.DateTime(),
    help='What "yesterday" is seen from (UTC).  [default: the conversation\'s end, or now]',
)
@click.option(
    "--min-score", type=click.FloatRange(0, 1), default=0.0, help="Only hits of this score."
)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True)
@click.option("--explain", is_flag=True, help="Show how each signal scored each hit.")
@click.option("--full", is_flag=True, help="Every word of each hit, not one line.")
@click.option("--fresh", is_flag=True, help="Wait for what was just stored (one conversation).")
@json_option
@pass_state
def search(
    state: State,
    /,
    query: str,
    *,
    branch: int | None,
    group_by: str,
    full: bool,
    fresh: bool,
    **conditions: Any,
) -> None:
    """Find events by meaning and by words, best first.

    \b
    Examples:
      annals search "refund of order 4711" --role user --from 2026-04-01
      annals search "what did we decide last week?" --reference-time 2026-04-20
    """
    answer = state.client().search.events(
        query,
        branch=branch or 0,
        group_by=group_by,
        freshness="read-your-writes" if fresh else "eventual",
        **conditions,
    )
    if state.as_json:
        print_json(answer)
        return
    console = stdout_console()
    for hit in answer.hits:
        print_event(console, hit.event, full=full, lead=f"{hit.score:.3f}  {hit.conversation_id}  ")
        if hit.group_size > 1 and group_by == "conversation":
            click.echo(f"         the best of {hit.group_size} events found in this conversation")
        _explain(hit)
    _note_what_lacks(answer)


def _explain(hit: pb.SearchHit) -> None:
    for part in hit.components:
        click.echo(
            f"         {part.signal}: raw {part.raw_score:.3f}, normalised "
            f"{part.normalized_score:.3f}, weight {part.weight:.2f}, rank {part.rank}"
        )


def _note_what_lacks(answer: pb.SearchEventsResponse) -> None:
    hits = "hit" if len(answer.hits) == 1 else "hits"
    notes = [f"{len(answer.hits)} {hits} in {answer.search_time_ms:.1f} ms"]
    if answer.unindexed_count:
        notes.append(f"{answer.unindexed_count} events wait to be indexed")
    if answer.degraded:
        notes.append(f"degraded: {', '.join(answer.degraded)}")
    click.echo("; ".join(notes), err=True)
