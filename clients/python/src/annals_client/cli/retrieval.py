"""`annals snippets`, `retrieve` and `across`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from annals.context.v1 import resources_pb2 as res
from annals_client.cli.events import print_event
from annals_client.cli.output import print_json, stdout_console, visible
from annals_client.cli.state import State, json_option, pass_state
from annals_client.requests.retrieval import Scope
from annals_client.values import enum_names

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_SCOPE = (
    click.option("--conversation", "conversation_ids", multiple=True, help="Only in this one."),
    click.option("--agent", "agent_id", default="", help="Only of this agent."),
    click.option("--user", "user_id", default="", help="Only of this user."),
    click.option("--session", "session_id", default="", help="Only of this session."),
)


def scope_options(command: CommandT) -> CommandT:
    """Accept what a `Scope` is made of."""
    for option in reversed(_SCOPE):
        command = option(command)
    return command


@click.command()
@click.argument("query")
@click.option("--max-tokens", type=int, default=0, help="Of the text.  [default: 1000]")
@click.option(
    "--strategy",
    type=click.Choice(enum_names(res.SnippetStrategy, "SNIPPET_STRATEGY_")),
    default="mixed",
    show_default=True,
    help="What comes first.",
)
@click.option("--alone", is_flag=True, help="Without the events before and after.")
@scope_options
@json_option
@pass_state
def snippets(
    state: State, /, *, query: str, max_tokens: int, strategy: str, alone: bool, **scope: Any
) -> None:
    """Print the parts of events that bear on QUERY, within a budget."""
    found = state.client().context.snippets(
        query,
        max_tokens=max_tokens,
        strategy=strategy,
        expand_context=not alone,
        scope=Scope(**scope),
    )
    _print_text(state, found)


@click.command()
@click.argument("query")
@click.option("--limit", "auto_limit", type=int, default=0, help="Events at most.  [default: 20]")
@click.option("--max-tokens", type=int, default=0, help="Of their words.  [default: 4000]")
@scope_options
@json_option
@pass_state
def retrieve(
    state: State, /, *, query: str, auto_limit: int, max_tokens: int, **scope: Any
) -> None:
    """Print the events that bear on QUERY whole, as many as belong together and fit."""
    found = state.client().context.retrieve(
        query, auto_limit=auto_limit, max_tokens=max_tokens, scope=Scope(**scope)
    )
    if state.as_json:
        print_json(found)
        return
    console = stdout_console()
    for item in found.events:
        print_event(console, item.event, full=True, lead=f"{item.score:.3f}  {item.handle}  ")
    for handle in found.omitted_handles:
        click.echo(f"did not fit: {handle}", err=True)
    _note(found)


@click.command()
@click.argument("query")
@click.option("--conversation", "conversation_id", default="", help="The one in hand.")
@click.option(
    "--scope",
    type=click.Choice(enum_names(res.ConversationScope, "CONVERSATION_SCOPE_")),
    default="user",
    show_default=True,
    help="Whose conversations.",
)
@click.option("--max-tokens", type=int, default=0, help="Of the text.  [default: 2000]")
@click.option("--each", type=int, default=0, help="Snippets of one conversation.  [default: 5]")
@click.option("--limit", type=int, default=0, help="Conversations at most.  [default: 10]")
@json_option
@pass_state
def across(
    state: State,
    *,
    query: str,
    conversation_id: str,
    scope: str,
    max_tokens: int,
    each: int,
    limit: int,
) -> None:
    """Print what other conversations of the same user, agent or tenant say about QUERY."""
    found = state.client().context.across(
        query,
        conversation_id=conversation_id,
        scope=scope,
        max_tokens=max_tokens,
        snippets_per_conversation=each,
        limit=limit,
    )
    _print_text(state, found)


def _print_text(state: State, found: Any) -> None:
    if state.as_json:
        print_json(found)
        return
    click.echo(visible(found.text), nl=False)
    _note(found)


def _note(found: Any) -> None:
    degraded: Sequence[str] = found.degraded
    notes = [f"{found.total_tokens} tokens", *(f"degraded: {why}" for why in degraded)]
    click.echo("; ".join(notes), err=True)
