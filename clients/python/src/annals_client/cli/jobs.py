"""`annals jobs`."""

from __future__ import annotations

import click

from annals.storage.v1 import job_service_pb2 as pb
from annals_client.cli.output import moment, print_fields, print_json, print_json_array, print_table
from annals_client.cli.parameters import POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name


@click.group()
def jobs() -> None:
    """Background work on conversations."""


@jobs.command()
@click.option("--conversation", "conversation_id", default="", help="Only this one.")
@json_option
@pass_state
def status(state: State, conversation_id: str) -> None:
    """Show what waits, by kind."""
    found = state.client().jobs.status(conversation_id=conversation_id)
    if state.as_json:
        print_json(found)
        return
    rows = ((_kind(b.kind), b.pending_count, b.parked_count, b.lag_ms) for b in found.backlogs)
    print_table(("kind", "pending", "parked", "lag ms"), rows)


@jobs.command()
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def parked(state: State, limit: int | None) -> None:
    """List what failed too often, newest first. Needs a key with tenant-admin."""
    found = state.client().jobs.parked(limit=limit)
    if state.as_json:
        print_json_array(found)
        return
    print_table(("since", "kind", "conversation", "attempts", "error"), map(_row, found))


@jobs.command()
@click.argument("conversation_ids", nargs=-1, metavar="[CONVERSATION…]")
@json_option
@pass_state
def retry(state: State, conversation_ids: tuple[str, ...]) -> None:
    """Have what was given up tried again, of these conversations or all. Needs tenant-admin."""
    retried = state.client().jobs.retry(conversation_ids)
    if state.as_json:
        print_json({"retried_count": retried})
        return
    print_fields({"tried again": retried})


def _row(job: pb.ParkedJob) -> tuple[object, ...]:
    return moment(job.park_time), _kind(job.kind), job.conversation_id, job.attempts, job.error


def _kind(kind: pb.JobKind.ValueType) -> str:
    return enum_name(pb.JobKind, "JOB_KIND_", kind)
