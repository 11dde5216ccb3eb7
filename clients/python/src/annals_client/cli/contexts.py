"""`annals context` and `annals count-tokens`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.panel import Panel
from rich.text import Text

from annals.context.v1 import context_service_pb2 as pb
from annals.context.v1 import resources_pb2 as res
from annals.storage.v1 import resources_pb2 as storage_res
from annals_client.cli.output import print_fields, print_json, print_table, stdout_console
from annals_client.cli.parameters import NATURAL_INT32, POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name, enum_names

_FORMATS = {
    "openai": "openai-chat",
    "responses": "openai-responses",
    "anthropic": "anthropic-messages",
    "gemini": "gemini-contents",
    "text": "text",
}
_BAR_CHARS = 20


@click.command("context")
@click.argument("conversation_id")
@click.argument("query", default="")
@click.option(
    "--budget",
    "budget_tokens",
    type=POSITIVE_INT32,
    required=True,
    help="Tokens, with the reserve.",
)
@click.option(
    "--reserve", "reserve_tokens", type=NATURAL_INT32, default=0, help="Kept for the answer."
)
@click.option("--message", "current_message", default="", help="What the user says now.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_FORMATS)),
    default="openai",
    show_default=True,
)
@click.option(
    "--strategy",
    type=click.Choice(enum_names(res.Strategy, "STRATEGY_")),
    help="How it is chosen (the agent's, else adaptive).",
)
@click.option(
    "--snippets",
    "snippet_strategy",
    type=click.Choice(enum_names(storage_res.SnippetStrategy, "SNIPPET_STRATEGY_")),
    help="What of a long event a snippet shows (the agent's, else first).",
)
@click.option("--snippet-chars", type=POSITIVE_INT32, help="Characters of a snippet.")
@click.option("--index-tokens", "max_index_tokens", type=NATURAL_INT32, help="For the index.")
@click.option("--summary-ratio", type=float, help="Part of the budget for summaries, 0 to 1.")
@click.option(
    "--min-cluster", "min_cluster_size", type=POSITIVE_INT32, help="Events of a topic, at least."
)
@click.option(
    "--chunk-threshold",
    "chunk_threshold_tokens",
    type=POSITIVE_INT32,
    help="Tool results of more tokens are cut short.",
)
@click.option("--model", default="", help="The model that reads it; decides the tokenizer.")
@click.option("--recent", "recent_events", type=NATURAL_INT32, help="Newest events always there.")
@click.option("--relevant", "relevant_events", type=NATURAL_INT32, help="Events to search for.")
@click.option("--fresh", is_flag=True, help="Wait until what was just stored can be found.")
@click.option("--payload-only", is_flag=True, help="Print the payload exactly as counted.")
@json_option
@pass_state
def context_command(
    state: State,
    /,
    *,
    conversation_id: str,
    query: str,
    budget_tokens: int,
    reserve_tokens: int,
    current_message: str,
    form: str,
    strategy: str | None,
    snippet_strategy: str | None,
    model: str,
    recent_events: int | None,
    relevant_events: int | None,
    fresh: bool,
    payload_only: bool,
    **index: Any,
) -> None:
    """Prepare what the model should see next, in --budget tokens, with its ledger.

    QUERY says what to look for; without it, the newest message of the user does.
    """
    prepared = state.client().context.prepare(
        conversation_id,
        budget_tokens=budget_tokens,
        response_reserve_tokens=reserve_tokens,
        query=query,
        current_message=current_message,
        model=model,
        payload_format=_FORMATS[form],
        strategy=strategy or 0,
        snippet_strategy=snippet_strategy or 0,
        recent_events=recent_events,
        relevant_events=relevant_events,
        read_your_writes=fresh,
        **index,
    )
    if state.as_json:
        print_json(prepared)
    elif payload_only:
        click.echo(prepared.payload, nl=False)
    else:
        print_prepared(prepared)


@click.command("system-prompt")
@click.argument("conversation_id")
@click.option("--model", default="", help="Decides the tokenizer (default: the agent's).")
@json_option
@pass_state
def system_prompt(state: State, conversation_id: str, model: str) -> None:
    """Print what the agent is told first, with what it wants of the client's context."""
    built = state.client().context.build_system_prompt(conversation_id, model=model)
    if state.as_json:
        print_json(built)
    else:
        click.echo(built.system_prompt)


@click.command("count-tokens")
@click.argument("texts", nargs=-1)
@click.option("--model", default="", help="Decides the tokenizer (default gpt-4o).")
@json_option
@pass_state
def count_tokens(state: State, texts: Sequence[str], model: str) -> None:
    """Count the tokens of TEXTS, or of stdin."""
    several = texts or [sys.stdin.read()]
    counted = state.client().formats.count_tokens(several, model=model)
    if state.as_json:
        print_json(counted)
        return
    counter = counted.counter
    click.echo(f"{counted.total_tokens} tokens ({_counter(counter)})")


def print_prepared(prepared: pb.PrepareContextResponse) -> None:
    """Print a context, its ledger, its items and what it adds up to."""
    console = stdout_console()
    if console.is_terminal:
        console.print(Panel(Text(prepared.payload), title="payload", border_style="dim"))
    else:
        click.echo(prepared.payload)
    click.echo()
    _print_ledger(prepared)
    click.echo()
    _print_items(prepared)
    click.echo()
    _print_totals(prepared)


def _print_ledger(prepared: pb.PrepareContextResponse) -> None:
    rows = [
        (
            enum_name(res.Section, "SECTION_", entry.section),
            entry.tokens,
            _bar(entry.tokens, prepared.total_tokens),
            entry.full_count,
            entry.snippet_count,
            entry.stub_count,
        )
        for entry in prepared.ledger
    ]
    print_table(["section", "tokens", "share", "full", "snippets", "stubs"], rows)


def _print_items(prepared: pb.PrepareContextResponse) -> None:
    rows = [
        (
            item.handle or "-",
            enum_name(res.Section, "SECTION_", item.section),
            enum_name(res.DetailLevel, "DETAIL_LEVEL_", item.detail),
            item.tokens,
            f"{item.score:.3f}" if item.score else "",
        )
        for item in prepared.items
    ]
    print_table(["item", "section", "detail", "tokens", "score"], rows)


def _print_totals(prepared: pb.PrepareContextResponse) -> None:
    repairs = [f"{repair.kind} {repair.tool_call_id}" for repair in prepared.repairs]
    limit_tokens = prepared.budget_tokens - prepared.response_reserve_tokens
    print_fields(
        {
            "total": f"{prepared.total_tokens} of {limit_tokens} tokens",
            "budget": prepared.budget_tokens,
            "reserve": prepared.response_reserve_tokens,
            "counter": _counter(prepared.counter),
            "strategy": enum_name(res.Strategy, "STRATEGY_", prepared.strategy),
            "items": len(prepared.items),
            "omitted": prepared.omitted_events,
            "degraded": ", ".join(prepared.degraded) or "no",
            "repairs": ", ".join(repairs),
            "version": prepared.context_version,
            "view": prepared.view,
        }
    )


def _bar(tokens: int, total_tokens: int) -> str:
    share = tokens / total_tokens if total_tokens else 0.0
    filled = round(share * _BAR_CHARS)
    return f"{'█' * filled}{'·' * (_BAR_CHARS - filled)} {share:4.0%}"


def _counter(counter: res.TokenCounter) -> str:
    if counter.exact:
        return counter.encoding
    return f"{counter.encoding}, estimated, {counter.margin_tokens} tokens kept free"
