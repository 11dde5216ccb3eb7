"""`annals topic`."""

from __future__ import annotations

import click

from annals.storage.v1 import topic_service_pb2 as pb
from annals_client.cli.events import print_event
from annals_client.cli.output import (
    moment,
    print_json,
    print_json_array,
    print_table,
    stdout_console,
)
from annals_client.cli.state import State, json_option, pass_state


@click.group()
def topic() -> None:
    """What conversations are about: clusters of events, found in the background."""


@topic.command(name="list")
@click.argument("conversation_id", metavar="CONVERSATION")
@click.option("--branch", type=click.IntRange(min=0), default=0, help="0: the current one.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@json_option
@pass_state
def list_topics(state: State, conversation_id: str, branch: int, limit: int) -> None:
    """List the largest topics, and of which of them was spoken when."""
    found = state.client().topics.overview(conversation_id, branch=branch, limit=limit)
    if state.as_json:
        print_json(found)
        return
    rows = (
        (t.topic_id, t.event_count, moment(t.first_event_time), moment(t.last_event_time), t.label)
        for t in found.topics
    )
    print_table(("id", "events", "first", "last", "label"), rows)
    for period in found.periods:
        click.echo(f"{period.name}: {period.event_count} events{_shares(period)}", err=True)


@topic.command(name="show")
@click.argument("topic_id", metavar="TOPIC")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@json_option
@pass_state
def show_topic(state: State, topic_id: str, limit: int) -> None:
    """Show a topic by its id with its newest events."""
    found = state.client().topics.cluster(topic_id, limit=limit)
    if state.as_json:
        print_json(found)
        return
    click.echo(f"{found.topic.label}: {found.topic.event_count} events")
    click.echo(found.topic.summary)
    console = stdout_console()
    for event in found.events:
        print_event(console, event, full=False)


@topic.command()
@click.argument("conversation_id", metavar="CONVERSATION")
@click.argument("name", metavar="TOPIC")
@click.option("--branch", type=click.IntRange(min=0), default=0, help="0: the current one.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@json_option
@pass_state
def events(state: State, conversation_id: str, name: str, branch: int, limit: int | None) -> None:
    """List the events of a topic, named by its id or its label."""
    found = state.client().topics.messages(conversation_id, name, branch=branch, limit=limit)
    if state.as_json:
        print_json_array(found)
        return
    console = stdout_console()
    for event in found:
        print_event(console, event, full=False)


def _shares(period: pb.TopicPeriod) -> str:
    shares = ", ".join(f"{share.label} {share.event_count}" for share in period.topics[:5])
    return f" ({shares})" if shares else ""
