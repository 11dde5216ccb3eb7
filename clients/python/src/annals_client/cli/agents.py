"""`annals agent`."""

from __future__ import annotations

from pathlib import Path

import click

from annals.storage.v1 import resources_pb2 as res
from annals_client.cli.output import (
    moment,
    one_line,
    print_fields,
    print_json,
    print_json_array,
    print_table,
)
from annals_client.cli.state import State, json_option, pass_state

tenant_option = click.option(
    "--tenant", "tenant_id", default="", help="Tenant, with the admin key; else the key's own."
)
_file = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.group()
def agent() -> None:
    """Create and list agents."""


@agent.command()
@click.argument("name")
@click.option("--system-prompt", default="", help="Put first in every prepared context.")
@click.option("--system-prompt-file", type=_file, help="The same, from a file.")
@click.option("--model", default="", help="Default model for contexts, such as gpt-4o.")
@click.option("--temperature", type=click.FloatRange(0, 2), help="Sampling temperature.")
@click.option("--tools-file", type=_file, help="Tool definitions: a JSON array.")
@click.option("--id", "agent_id", default="", help="UUID of the agent; else made up.")
@tenant_option
@json_option
@pass_state
def create(
    state: State,
    *,
    name: str,
    system_prompt: str,
    system_prompt_file: Path | None,
    model: str,
    temperature: float | None,
    tools_file: Path | None,
    agent_id: str,
    tenant_id: str,
) -> None:
    """Create an agent."""
    created = state.client().agents.create(
        name,
        agent_id=agent_id,
        system_prompt=system_prompt or _text(system_prompt_file),
        model=model,
        temperature=temperature,
        tools_json=_text(tools_file),
        tenant_id=tenant_id,
    )
    _print(state, created)


@agent.command("list")
@tenant_option
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
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
    fields: dict[str, object] = {
        "agent": item.agent_id,
        "name": item.display_name,
        "model": item.model,
        "temperature": item.temperature if item.HasField("temperature") else "",
        "created": moment(item.create_time),
        "system prompt": item.system_prompt,
    }
    print_fields(fields)


def _text(path: Path | None) -> str:
    return path.read_text(encoding="utf-8") if path else ""
