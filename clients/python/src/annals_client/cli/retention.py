"""`annals retention`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from annals.storage.v1 import lifecycle_service_pb2 as pb
from annals_client.cli.output import (
    moment,
    print_fields,
    print_json,
    print_json_array,
    print_table,
    stderr_console,
)
from annals_client.cli.parameters import NATURAL_INT64, POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state

_DAYS = {
    "archive": "archive_after_days",
    "cold": "cold_after_days",
    "erase": "erase_after_days",
    "erase deleted": "erase_deleted_after_days",
    "provider logs": "provider_log_days",
    "search log": "search_log_days",
}
_agent = click.option("--agent", "agent_id", default="", help="Of this agent, else the tenant's.")
Command = Callable[..., Any]


@click.group()
def retention() -> None:
    """Say what becomes of conversations as they age. Needs a key with tenant-admin."""


def _day_options(command: Command) -> Command:
    for name, field in reversed(_DAYS.items()):
        option = f"--{name.replace(' ', '-')}"
        command = click.option(option, field, type=POSITIVE_INT32, metavar="DAYS")(command)
    return command


@retention.command("set")
@_agent
@_day_options
@json_option
@pass_state
def set_policy(state: State, /, agent_id: str, **days: int | None) -> None:
    """Set a policy in whole: what is not named never happens.

    \b
    Example:
      annals retention set --archive 30 --cold 90 --erase 730 --erase-deleted 30
    """
    _print(state, state.client().retention.set(agent_id, **days))


@retention.command()
@_agent
@json_option
@pass_state
def get(state: State, agent_id: str) -> None:
    """Show the policy of the tenant, or of one agent."""
    _print(state, state.client().retention.get(agent_id))


@retention.command("list")
@json_option
@pass_state
def list_policies(state: State) -> None:
    """List all policies, the tenant's own first."""
    found = state.client().retention.list()
    if state.as_json:
        print_json_array(found)
        return
    rows = ((it.agent_id or "(tenant)", *_days_of(it).values()) for it in found)
    print_table(("agent", *_DAYS), rows)


@retention.command()
@_agent
@pass_state
def delete(state: State, agent_id: str) -> None:
    """Remove a policy."""
    state.client().retention.delete(agent_id)
    click.echo("removed", err=True)


@retention.command("move-to-cold")
@click.argument("conversation_id")
@click.option("--until", "until_seq", type=NATURAL_INT64, default=0, help="Up to this seq.")
@json_option
@pass_state
def move_to_cold(state: State, conversation_id: str, until_seq: int) -> None:
    """Move the content of old events to cold storage; reads bring it back by themselves."""
    move = state.client().retention.move_to_cold
    with stderr_console().status("moving"):
        moved = move(conversation_id, until_seq=until_seq)
    if state.as_json:
        print_json(moved)
        return
    print_fields({"events": moved.event_count, "bytes": moved.stored_bytes})


@retention.command("restore-from-cold")
@click.argument("conversation_id")
@json_option
@pass_state
def restore_from_cold(state: State, conversation_id: str) -> None:
    """Move the content of a conversation back from cold storage for good."""
    restore = state.client().retention.restore_from_cold
    with stderr_console().status("moving"):
        events = restore(conversation_id)
    if state.as_json:
        print_json({"event_count": events})
        return
    print_fields({"events": events})


def _print(state: State, policy: pb.RetentionPolicy) -> None:
    if state.as_json:
        print_json(policy)
        return
    days = {name: f"after {value} days" for name, value in _days_of(policy).items() if value}
    print_fields(
        {"of": policy.agent_id or "the tenant", **days, "updated": moment(policy.update_time)}
    )


def _days_of(policy: pb.RetentionPolicy) -> dict[str, int | str]:
    return {name: getattr(policy, field) or "" for name, field in _DAYS.items()}
