"""`annals search`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from annals.storage.v1 import search_service_pb2 as pb
from annals_client.cli.events import print_event
from annals_client.cli.output import print_json, stdout_console
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_names


@click.command()
@click.argument("query")
@click.option("--conversation", "conversation_ids", multiple=True, help="Only in this one.")
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
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True)
@click.option("--explain", is_flag=True, help="Show how each signal scored each hit.")
@click.option("--full", is_flag=True, help="Every word of each hit, not one line.")
@click.option("--fresh", is_flag=True, help="Wait for what was just stored (one conversation).")
@json_option
@pass_state
def search(
    state: State,
    *,
    query: str,
    conversation_ids: Sequence[str],
    mode: str,
    language: str,
    group_by: str,
    diversity: float,
    limit: int,
    explain: bool,
    full: bool,
    fresh: bool,
) -> None:
    """Find events by meaning and by words, best first."""
    answer = state.client().search.events(
        query,
        conversation_ids=conversation_ids,
        mode=mode,
        language=language,
        group_by=group_by,
        diversity=diversity,
        limit=limit,
        explain=explain,
        freshness="read-your-writes" if fresh else "eventual",
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
