"""`annals tenant search-parameters`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_client.cli.agents import tenant_option
from annals_client.cli.output import print_json, print_table
from annals_client.cli.state import State, json_option, pass_state
from annals_client.requests.search_parameters import NAMES

DEFAULT = "default"
Answer = pb.GetSearchParametersResponse | pb.UpdateSearchParametersResponse


@click.group("search-parameters")
def search_parameters() -> None:
    """Show and change how searches rank."""


@search_parameters.command()
@tenant_option
@json_option
@pass_state
def show(state: State, tenant_id: str) -> None:
    """Show all parameters, and which are the tenant's own."""
    _print(state, state.client().search_parameters.get(tenant_id=tenant_id))


@search_parameters.command("set")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
@tenant_option
@json_option
@pass_state
def set_parameters(state: State, settings: Sequence[str], tenant_id: str) -> None:
    """Change the named parameters and no others; NAME=default takes the default again.

    \b
    Examples:
      annals tenant search-parameters set time_bonus=0.2 speaker_bonus=0
      annals tenant search-parameters set time_bonus=default
    """
    values = _values(settings)
    _print(state, state.client().search_parameters.update(values, tenant_id=tenant_id))


def _values(settings: Sequence[str]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for name, value in map(_setting, settings):
        if name in values:
            raise click.UsageError(f"{name} is named twice")
        values[name] = value
    return values


def _setting(text: str) -> tuple[str, float | None]:
    name, _, value = text.partition("=")
    if name not in NAMES:
        raise click.UsageError(f"{text!r} names no parameter; there are {', '.join(NAMES)}")
    if value == DEFAULT:
        return name, None
    try:
        return name, int(value) if _is_count(name) else float(value)
    except ValueError:
        kind = "a whole number" if _is_count(name) else "a number"
        raise click.UsageError(f"{text!r}: needs {kind} or {DEFAULT!r}") from None


def _is_count(name: str) -> bool:
    field = res.SearchParameters.DESCRIPTOR.fields_by_name[name]
    return field.cpp_type == field.CPPTYPE_INT32


def _print(state: State, answer: Answer) -> None:
    if state.as_json:
        print_json(answer)
        return
    own = set(answer.overridden)
    rows = (
        (name, f"{getattr(answer.parameters, name):g}", "own" if name in own else DEFAULT)
        for name in NAMES
    )
    print_table(["parameter", "value", "from"], rows)
