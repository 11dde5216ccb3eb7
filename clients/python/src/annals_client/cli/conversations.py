"""`annals conversation`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from annals.storage.v1 import resources_pb2 as res
from annals_client.cli.output import (
    as_dict,
    moment,
    one_line,
    print_fields,
    print_json,
    print_json_array,
    print_table,
)
from annals_client.cli.parameters import NATURAL_INT64, POSITIVE_INT32, JsonObject
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name, enum_names

_PREFIX = "CONVERSATION_STATUS_"
_STATUSES = click.Choice(enum_names(res.ConversationStatus, _PREFIX))


@click.group()
def conversation() -> None:
    """Create, read, change, end, archive, delete, restore and merge conversations."""


@conversation.command()
@click.option("--title", default="", help="For people.")
@click.option("--agent", "agent_id", default="", help="The agent that answers.")
@click.option("--user", "user_id", default="", help="The end user.")
@click.option("--session", "session_id", default="", help="The end user's session.")
@click.option("--host-id", "host_conversation_id", default="", help="Your application's own id.")
@click.option("--metadata", type=JsonObject(), help="Your own data: a JSON object.")
@click.option("--id", "conversation_id", default="", help="UUID; else made up.")
@json_option
@pass_state
def create(state: State, /, **fields: Any) -> None:
    """Create a conversation."""
    _print(state, state.client().conversations.create(**fields))


@conversation.command()
@click.argument("conversation_id", default="")
@click.option("--host-id", "host_conversation_id", default="", help="Your application's own id.")
@json_option
@pass_state
def get(state: State, conversation_id: str, host_conversation_id: str) -> None:
    """Show one conversation, by its id or by --host-id."""
    if bool(conversation_id) == bool(host_conversation_id):
        raise click.UsageError("name a conversation or --host-id, one of them")
    found = state.client().conversations.get(
        conversation_id, host_conversation_id=host_conversation_id
    )
    _print(state, found)


@conversation.command()
@click.option("--user", "user_id", default="", help="Of this user.")
@click.option("--session", "session_id", default="", help="Of this session.")
@click.option("--agent", "agent_id", default="", help="Only with this agent.")
@json_option
@pass_state
def current(state: State, /, **owner: Any) -> None:
    """Show the newest active conversation of a user or a session."""
    if not (owner["user_id"] or owner["session_id"]):
        raise click.UsageError("whose? name --user or --session")
    _print(state, state.client().conversations.current(**owner))


@conversation.command("list")
@click.option("--agent", "agent_id", default="", help="Only of this agent.")
@click.option("--user", "user_id", default="", help="Only of this user.")
@click.option("--session", "session_id", default="", help="Only of this session.")
@click.option("--status", "statuses", multiple=True, type=_STATUSES, help="Only with it.")
@click.option("--deleted", "show_deleted", is_flag=True, help="Deleted ones too.")
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def list_conversations(state: State, /, **conditions: Any) -> None:
    """List conversations, last active first."""
    found = state.client().conversations.list(**conditions)
    if state.as_json:
        print_json_array(found)
        return
    print_table(["conversation", "title", "status", "events", "tokens", "active"], map(_row, found))


@conversation.command()
@click.argument("conversation_id")
@click.option("--title", help="For people.")
@click.option(
    "--status", type=_STATUSES, help="active takes events again, after an end or an archiving."
)
@click.option("--agent", "agent_id", help="The agent that answers.")
@click.option("--user", "user_id", help="The end user.")
@click.option("--session", "session_id", help="The end user's session.")
@click.option("--metadata", type=JsonObject(), help="Your own data: a JSON object.")
@click.option(
    "--version", type=NATURAL_INT64, default=0, help="Change only if it is at this version."
)
@json_option
@pass_state
def update(state: State, /, conversation_id: str, version: int, **changes: Any) -> None:
    """Change what the options name."""
    if all(value is None for value in changes.values()):
        raise click.UsageError("nothing to change; name a field, such as --title")
    client = state.client()
    _print(state, client.conversations.update(conversation_id, version=version, **changes))


@conversation.command()
@click.argument("conversation_id")
@click.option("--summary", default="", help="Kept as end_summary.")
@json_option
@pass_state
def end(state: State, conversation_id: str, summary: str) -> None:
    """Complete a conversation."""
    _print(state, state.client().conversations.end(conversation_id, summary=summary))


@conversation.command()
@click.argument("conversation_id")
@json_option
@pass_state
def archive(state: State, conversation_id: str) -> None:
    """Put a conversation away: readable and searchable, takes no events.

    `annals conversation update CONVERSATION --status active` brings it back.
    """
    _print(state, state.client().conversations.archive(conversation_id))


@conversation.command()
@click.argument("conversation_ids", nargs=-1, required=True)
@json_option
@pass_state
def delete(state: State, conversation_ids: Sequence[str]) -> None:
    """Hide conversations until they are restored."""
    client = state.client()
    for conversation_id in conversation_ids:
        _print(state, client.conversations.delete(conversation_id))


@conversation.command()
@click.argument("conversation_id")
@json_option
@pass_state
def restore(state: State, conversation_id: str) -> None:
    """Bring a deleted conversation back."""
    _print(state, state.client().conversations.restore(conversation_id))


@conversation.command("merge-session")
@click.argument("session_id")
@click.argument("user_id", default="")
@json_option
@pass_state
def merge_session(state: State, session_id: str, user_id: str) -> None:
    """Move the anonymous conversations of a session to a user, after a login.

    With a publishable key the signed token names the user, not USER_ID. It cannot be undone, and
    the session stays that user's: what comes later is moved by the same command again.
    """
    merged = state.client().conversations.merge_session(session_id, user_id)
    if state.as_json:
        print_json(merged)
        return
    print_fields(
        {
            "moved": merged.moved_count,
            "user": merged.user_id,
            "first merged": moment(merged.merge_time),
        }
    )


def _print(state: State, item: res.Conversation) -> None:
    if state.as_json:
        print_json(item)
        return
    fields: dict[str, object] = {
        "conversation": item.conversation_id,
        "title": item.title,
        "status": _status(item),
        "agent": item.agent_id,
        "user": item.user_id,
        "session": item.session_id,
        "host id": item.host_conversation_id,
        "events": item.event_count,
        "messages": item.message_count,
        "tokens": item.token_count,
        "version": item.version,
        "created": moment(item.create_time),
        "last event": moment(item.last_event_time),
        "ended": moment(item.end_time),
        "archived": moment(item.archive_time),
        "deleted": moment(item.delete_time),
        "summary": item.end_summary,
        "metadata": json.dumps(as_dict(item.metadata)) if item.metadata.fields else "",
    }
    print_fields(fields)


def _row(item: res.Conversation) -> tuple[object, ...]:
    active = item.last_event_time if item.last_event_time.seconds else item.create_time
    title = one_line(item.title, 40)
    counts = (item.event_count, item.token_count)
    return (item.conversation_id, title, _status(item), *counts, moment(active))


def _status(item: res.Conversation) -> str:
    return enum_name(res.ConversationStatus, _PREFIX, item.status)
