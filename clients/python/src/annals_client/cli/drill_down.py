"""`annals expand`, `collapse` and `focus`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from annals.context.v1 import context_service_pb2 as pb
from annals.context.v1 import resources_pb2 as res
from annals_client.cli.contexts import print_prepared
from annals_client.cli.output import print_json, print_table
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name

Step = pb.ExpandDetailResponse | pb.CollapseDetailResponse | pb.FocusOnResponse


class View(click.ParamType[str]):
    """A view; `-` takes it from stdin, also out of the JSON that a step printed."""

    name = "view"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the view, or fail saying why there is none."""
        if value != "-":
            return value
        text = sys.stdin.read().strip()
        if not text.startswith("{"):
            return text
        try:
            answer = json.loads(text)
            return str(answer.get("context", answer)["view"])
        except (ValueError, KeyError, AttributeError):
            self.fail("stdin is no answer with a view", param, ctx)


VIEW = View()


@click.command()
@click.argument("view", type=VIEW)
@click.argument("handles", nargs=-1, required=True)
@json_option
@pass_state
def expand(state: State, view: str, handles: Sequence[str]) -> None:
    """Prepare the context of VIEW again with events in full, such as '#41'.

    VIEW is what the last step printed; - reads it, or the whole JSON of the step, from stdin.
    """
    _print(state, state.client().context.expand(view, handles))


@click.command()
@click.argument("view", type=VIEW)
@click.argument("handles", nargs=-1, required=True)
@json_option
@pass_state
def collapse(state: State, view: str, handles: Sequence[str]) -> None:
    """Prepare the context of VIEW again with events as stubs at most."""
    _print(state, state.client().context.collapse(view, handles))


@click.command()
@click.argument("view", type=VIEW)
@click.argument("query", default="")
@json_option
@pass_state
def focus(state: State, view: str, query: str) -> None:
    """Prepare the context of VIEW again for QUERY; without it, for the first one."""
    _print(state, state.client().context.focus_on(view, query))


def _print(state: State, step: Step) -> None:
    if state.as_json:
        print_json(step)
        return
    print_prepared(step.context)
    click.echo()
    rows = ((change.handle, _level(change.before), _level(change.after)) for change in step.changes)
    print_table(["changed", "before", "after"], rows)
    if step.conversation_changed:
        click.echo("the conversation has changed since the view was made", err=True)


def _level(number: int) -> str:
    return enum_name(res.DetailLevel, "DETAIL_LEVEL_", number) if number else "-"
