"""`annals turn`."""

from __future__ import annotations

from typing import Any

import click

from annals.storage.v1 import event_service_pb2 as pb
from annals_client.cli.output import print_fields, print_json
from annals_client.cli.state import State, json_option, pass_state
from annals_client.cli.words import Words, event_options


@click.group()
def turn() -> None:
    """Store what a logical slot of a conversation holds now, again and again."""


@turn.command()
@click.argument("turn_id")
@click.argument("text", default=None, required=False)
@click.option("--conversation", "conversation_id", default="", help="Else --host-id, else new.")
@click.option("--host-id", "host_conversation_id", default="", help="Your application's own id.")
@click.option("--agent", "agent_id", default="", help="Of a conversation created here.")
@click.option("--session", "session_id", default="", help="Of a conversation created here.")
@event_options
@json_option
@pass_state
def store(
    state: State,
    /,
    turn_id: str,
    text: str | None,
    *,
    conversation_id: str,
    host_conversation_id: str,
    agent_id: str,
    session_id: str,
    **words: Any,
) -> None:
    """Store TEXT as turn TURN_ID. No TEXT, or `-`, reads stdin.

    The first store makes an event, each further one a version of it:
    `annals history CONVERSATION:TURN_ID`. Its type may not change.

    \b
    Examples:
      annals turn store turn-7 --host-id thread-12 --role assistant "It was ship"
      annals turn store turn-7 --host-id thread-12 --role assistant "It was shipped."
      annals turn store turn-8 --host-id thread-12 --event - < event.json
    """
    stored = state.client().events.store_turn(
        turn_id,
        Words(**words).event(text),
        conversation_id=conversation_id,
        host_conversation_id=host_conversation_id,
        agent_id=agent_id,
        session_id=session_id,
    )
    print_json(stored) if state.as_json else print_fields(_fields(stored))


def _fields(stored: pb.StoreTurnResponse) -> dict[str, object]:
    return {
        "conversation": stored.event.conversation_id,
        "event": stored.event.event_id,
        "seq": stored.event.seq,
        "turn": stored.event.turn_key,
        "version": stored.observation_version,
        "created": "yes" if stored.created else "no",
        "replayed": "yes, stored before" if stored.replayed else "",
        "supersedes": stored.superseded_event_id,
    }
