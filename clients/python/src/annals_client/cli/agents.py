"""`annals agent`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

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
from annals_client.cli.parameters import POSITIVE_INT32, JsonMessage
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name, enum_names

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

tenant_option = click.option(
    "--tenant", "tenant_id", default="", help="Tenant, with the admin key; else the key's own."
)
_file = click.Path(path_type=Path, dir_okay=False, exists=True)


_MODE_PREFIX = "END_USER_MODE_"
_OPTIONS = (
    click.option("--system-prompt", help="Put first in every prepared context."),
    click.option("--system-prompt-file", type=_file, help="The same, from a file."),
    click.option("--model", help="Default model for contexts, such as gpt-4o."),
    click.option("--temperature", type=click.FloatRange(0, 2), help="Sampling temperature."),
    click.option("--tools-file", type=_file, help="Tool definitions: a JSON array."),
    click.option("--output-schema-file", type=_file, help="JSON Schema of the answer."),
    click.option(
        "--end-user-mode",
        type=click.Choice(enum_names(res.EndUserMode, _MODE_PREFIX)),
        help="How end users prove who they are: sessions only, user ids on your word, or user"
        " ids in signed tokens (a new agent: trusted).",
    ),
    click.option(
        "--context-injection",
        type=JsonMessage(res.ContextInjection),
        metavar="JSON",
        help='What of the client\'s context to put first, such as {"include_locale": true}.',
    ),
    click.option(
        "--provider-logs/--no-provider-logs",
        "provider_logs_enabled",
        default=None,
        help="Whether raw provider requests may be stored (a new agent: no).",
    ),
)


def _agent_options(command: CommandT) -> CommandT:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group()
def agent() -> None:
    """Create, change and list agents."""


@agent.command()
@click.argument("name")
@_agent_options
@click.option("--id", "agent_id", default="", help="UUID of the agent; else made up.")
@tenant_option
@json_option
@pass_state
def create(state: State, /, name: str, agent_id: str, tenant_id: str, **fields: Any) -> None:
    """Create an agent."""
    created = state.client().agents.create(
        name, agent_id=agent_id, tenant_id=tenant_id, **_given(**fields)
    )
    _print(state, created)


@agent.command()
@click.argument("agent_id")
@click.option("--name", "display_name", help="For people.")
@_agent_options
@tenant_option
@json_option
@pass_state
def update(state: State, /, agent_id: str, tenant_id: str, **fields: Any) -> None:
    """Change what the options name and nothing else; "", or an empty file, clears a field.

    \b
    Examples:
      annals agent update 0199c7a2-… --model gpt-4o --end-user-mode signed
      annals agent update 0199c7a2-… --system-prompt-file prompt.txt --provider-logs
    """
    changes = _given(**fields)
    if not changes:
        raise click.UsageError("nothing to change; name a field, such as --model")
    _print(state, state.client().agents.update(agent_id, tenant_id=tenant_id, **changes))


@agent.command("list")
@tenant_option
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def list_agents(state: State, tenant_id: str, limit: int | None) -> None:
    """List agents, oldest first."""
    agents = state.client().agents.list(tenant_id=tenant_id, limit=limit)
    if state.as_json:
        print_json_array(agents)
        return
    rows = (
        (item.agent_id, item.display_name, item.model, one_line(item.system_prompt, 40))
        for item in agents
    )
    print_table(["agent", "name", "model", "system prompt"], rows)


@agent.command()
@click.argument("agent_id")
@tenant_option
@json_option
@pass_state
def show(state: State, agent_id: str, tenant_id: str) -> None:
    """Show one agent."""
    _print(state, state.client().agents.get(agent_id, tenant_id=tenant_id))


def _print(state: State, item: res.Agent) -> None:
    if state.as_json:
        print_json(item)
        return
    injected = item.context_injection.ListFields()
    fields: dict[str, object] = {
        "agent": item.agent_id,
        "name": item.display_name,
        "model": item.model,
        "temperature": item.temperature if item.HasField("temperature") else "",
        "end users": enum_name(res.EndUserMode, _MODE_PREFIX, item.end_user_mode),
        "tools": f"{len(item.tools_json):,} characters" if item.tools_json else "",
        "output schema": (
            f"{len(item.output_schema_json):,} characters" if item.output_schema_json else ""
        ),
        "context": json.dumps(as_dict(item.context_injection)) if injected else "",
        "provider logs": "kept" if item.provider_logs_enabled else "not kept",
        "created": moment(item.create_time),
        "updated": moment(item.update_time),
        "system prompt": item.system_prompt,
    }
    print_fields(fields)


def _given(
    *,
    system_prompt_file: Path | None,
    tools_file: Path | None,
    output_schema_file: Path | None,
    **fields: Any,
) -> dict[str, Any]:
    """The fields that options name, those in files read."""
    if system_prompt_file and fields["system_prompt"] is not None:
        raise click.UsageError("use --system-prompt or --system-prompt-file, not both")
    given = {name: value for name, value in fields.items() if value is not None}
    files = {
        "system_prompt": system_prompt_file,
        "tools_json": tools_file,
        "output_schema_json": output_schema_file,
    }
    read = {name: path.read_text(encoding="utf-8") for name, path in files.items() if path}
    return given | read
