"""`annals branches`, `branch`, `revert` and `fork`."""

from __future__ import annotations

import click

from annals.storage.v1 import resources_pb2 as res
from annals_client.cli.output import (
    moment,
    print_fields,
    print_json,
    print_json_array,
    print_table,
)
from annals_client.cli.parameters import POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state

_COLUMNS = ("branch", "from", "after seq", "own events", "current", "name", "created")


@click.command()
@click.argument("conversation_id")
@json_option
@pass_state
def branches(state: State, conversation_id: str) -> None:
    """List the branches of a conversation; branch 1 is the trunk."""
    found = state.client().events.branches(conversation_id)
    if state.as_json:
        print_json_array(found)
        return
    print_table(_COLUMNS, map(_row, found))


@click.command()
@click.argument("conversation_id")
@click.argument("event_id", default="")
@click.option("--select", "number", type=POSITIVE_INT32, help="Make this branch current.")
@click.option("--from", "parent_branch", type=POSITIVE_INT32, help="Of this branch.")
@click.option("--name", "display_name", default="", help="For people.")
@click.option("--stay", is_flag=True, help="Do not make the new branch current.")
@json_option
@pass_state
def branch(
    state: State,
    *,
    conversation_id: str,
    event_id: str,
    number: int | None,
    parent_branch: int | None,
    display_name: str,
    stay: bool,
) -> None:
    """Open a branch after EVENT_ID and make it current, or select one that is there.

    \b
    Examples:
      annals branch 0199c7a2-… 0199c7a3-… --name "without the discount"
      annals branch 0199c7a2-… --select 1
    """
    client = state.client()
    if number is None:
        opened = client.events.create_branch(
            conversation_id,
            event_id,
            parent_branch=parent_branch or 0,
            display_name=display_name,
            select=not stay,
        )
        _print(state, opened)
        return
    if event_id or parent_branch or display_name or stay:
        raise click.UsageError("--select takes the conversation alone")
    _print(state, client.events.select_branch(conversation_id, number))


@click.command()
@click.argument("conversation_id")
@click.argument("event_id", default="")
@click.option("--name", "display_name", default="", help="Name of the new branch.")
@json_option
@pass_state
def revert(state: State, conversation_id: str, event_id: str, display_name: str) -> None:
    """Go back to EVENT_ID, the last event to keep (none: to the beginning).

    What came after it stays readable on its branch.
    """
    opened = state.client().events.revert(conversation_id, event_id, display_name=display_name)
    _print(state, opened)


@click.command()
@click.argument("conversation_id")
@click.argument("event_id", default="")
@click.option("--branch", type=POSITIVE_INT32, help="The branch to copy, else the current.")
@click.option("--title", default="", help="Of the new conversation, else the same.")
@click.option("--id", "new_conversation_id", default="", help="UUID; else made up.")
@json_option
@pass_state
def fork(
    state: State,
    *,
    conversation_id: str,
    event_id: str,
    branch: int | None,
    title: str,
    new_conversation_id: str,
) -> None:
    """Copy a conversation, up to EVENT_ID, into a new one."""
    forked = state.client().conversations.fork(
        conversation_id,
        event_id,
        branch=branch or 0,
        title=title,
        new_conversation_id=new_conversation_id,
    )
    if state.as_json:
        print_json(forked)
        return
    made = forked.conversation
    print_fields(
        {
            "conversation": made.conversation_id,
            "title": made.title,
            "events": forked.event_count,
            "forked from": made.forked_from.conversation_id,
            "after seq": made.forked_from.seq,
        }
    )


def _print(state: State, item: res.Branch) -> None:
    if state.as_json:
        print_json(item)
        return
    print_fields(dict(zip(_COLUMNS, _row(item), strict=True)))


def _row(item: res.Branch) -> tuple[object, ...]:
    return (
        item.branch,
        item.parent_branch or "",
        item.fork_seq if item.parent_branch else "",
        item.event_count,
        "yes" if item.current else "",
        item.display_name,
        moment(item.create_time),
    )
