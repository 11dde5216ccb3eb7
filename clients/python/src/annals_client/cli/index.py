"""`annals index`."""

from __future__ import annotations

import click

from annals.storage.v1 import index_service_pb2 as pb
from annals_client.cli.output import moment, print_fields, print_json, print_json_array, print_table
from annals_client.cli.parameters import POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name


@click.group()
def index() -> None:
    """What could not be indexed. Needs a key with tenant-admin."""


@index.command()
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def parked(state: State, limit: int | None) -> None:
    """List what was given up after repeated failures, newest first."""
    found = state.client().index.parked(limit=limit)
    if state.as_json:
        print_json_array(found)
        return
    print_table(("since", "kind", "id", "conversation", "attempts", "error"), map(_row, found))


@index.command()
@click.argument("entry_ids", nargs=-1, metavar="[ID…]")
@json_option
@pass_state
def retry(state: State, entry_ids: tuple[str, ...]) -> None:
    """Have what was given up tried again: these events, memories or conversations, or all."""
    retried = state.client().index.retry(entry_ids)
    if state.as_json:
        print_json({"retried_count": retried})
        return
    print_fields({"tried again": retried})


def _row(entry: pb.ParkedEntry) -> tuple[object, ...]:
    return (
        moment(entry.park_time),
        enum_name(pb.ParkedEntryKind, "PARKED_ENTRY_KIND_", entry.kind),
        entry.entry_id,
        entry.conversation_id,
        entry.attempts,
        entry.error,
    )
