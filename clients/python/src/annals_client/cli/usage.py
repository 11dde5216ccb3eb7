"""`annals usage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from annals.storage.v1 import usage_service_pb2 as pb
from annals_client.cli.output import moment, print_json_array, print_table
from annals_client.cli.parameters import NATURAL_INT64, POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_names

_DIMENSIONS = enum_names(pb.UsageDimension, "USAGE_DIMENSION_")
_FIELDS = {"agent": "agent_id", "user": "user_id", "conversation": "conversation_id"}
_SUMS = {
    "events": "event_count",
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cached_input_tokens",
}


@click.command()
@click.option(
    "--by", "group_by", multiple=True, type=click.Choice(_DIMENSIONS), help="May be repeated."
)
@click.option("--from", "start_day", default="", metavar="DAY", help="Such as 2025-10-24, UTC.")
@click.option("--to", "end_day", default="", metavar="DAY", help="Inclusive.")
@click.option("--agent", "agent_id", default="", help="Only of this agent.")
@click.option("--user", "user_id", default="", help="Only of this user.")
@click.option("--conversation", "conversation_id", default="", help="Only of this one.")
@click.option("--limit", type=POSITIVE_INT32, help="At most so many rows.")
@click.option("--large", type=NATURAL_INT64, help="Instead: conversations of at least N events.")
@json_option
@pass_state
def usage(
    state: State,
    /,
    group_by: Sequence[str],
    *,
    large: int | None,
    limit: int | None,
    **conditions: Any,
) -> None:
    """Add up the tokens that providers reported: one total, or --by day, agent, user,
    conversation or model.

    \b
    Examples:
      annals usage --by day --by model --from 2025-10-01
      annals usage --large 0        conversations past the installation's alert size
    """
    if large is not None:
        _print_large(state, large, limit)
        return
    found = state.client().usage.list(group_by, limit=limit, **conditions)
    if state.as_json:
        print_json_array(found)
        return
    names = [*group_by, *_SUMS]
    fields = [_FIELDS.get(name, name) for name in group_by] + list(_SUMS.values())
    print_table(names, ([getattr(row, field) for field in fields] for row in found))


def _print_large(state: State, min_event_count: int, limit: int | None) -> None:
    found = state.client().usage.large_conversations(min_event_count, limit=limit)
    if state.as_json:
        print_json_array(found)
        return
    rows = (
        (it.conversation_id, it.event_count, it.token_count, moment(it.last_event_time))
        for it in found
    )
    print_table(("conversation", "events", "tokens", "last event"), rows)
