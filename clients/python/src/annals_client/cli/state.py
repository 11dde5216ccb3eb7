"""What the global options say, and the client they lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from annals_client.client import AnnalsClient
from annals_client.config import (
    DEFAULT_TIMEOUT_S,
    Endpoints,
    Secret,
    from_environment,
    read_endpoints,
)

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


@dataclass(slots=True)
class State:
    """The global options of one run."""

    given: Endpoints = field(default_factory=Endpoints)
    endpoints_path: Path | None = None
    as_json: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S

    def endpoints(self) -> Endpoints:
        """Options first, then the file named, else the environment and the nearest file."""
        base = read_endpoints(self.endpoints_path) if self.endpoints_path else from_environment()
        return self.given.over(base)

    def client(self) -> AnnalsClient:
        """Open a client that is closed with the command."""
        client = AnnalsClient.at(self.endpoints(), timeout=self.timeout_s)
        click.get_current_context().call_on_close(client.close)
        return client


def make_state(
    storage: str | None, context: str | None, api_key: str | None, **others: Any
) -> State:
    """Build the state from the global options."""
    given = Endpoints(storage or "", context or "", Secret(api_key or ""))
    return State(given, **others)


pass_state = click.make_pass_decorator(State)


def json_option(command: CommandT) -> CommandT:
    """Accept `--json` after the command's name too."""

    def note(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
        state = ctx.find_object(State)
        if value and state is not None:
            state.as_json = True

    option = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=note,
        help="Print JSON on stdout.",
    )
    return option(command)
