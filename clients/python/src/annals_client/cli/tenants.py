"""`annals tenant`."""

from __future__ import annotations

import click

from annals.storage.v1 import resources_pb2 as res
from annals_client.cli.output import (
    moment,
    print_fields,
    print_json,
    print_json_array,
    print_table,
)
from annals_client.cli.parameters import POSITIVE_INT32
from annals_client.cli.search_parameters import search_parameters
from annals_client.cli.state import State, json_option, pass_state


@click.group()
def tenant() -> None:
    """Create and list tenants (needs the admin key)."""


@tenant.command()
@click.argument("name")
@json_option
@pass_state
def create(state: State, name: str) -> None:
    """Create a tenant; prints its first key, once."""
    created = state.client().tenants.create(name)
    if state.as_json:
        print_json(created)
        return
    fields = _fields(created.tenant)
    print_fields({**fields, "api_key": created.api_key_secret})
    click.echo("Keep the key: it is not shown again.", err=True)


@tenant.command("list")
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def list_tenants(state: State, limit: int | None) -> None:
    """List tenants, oldest first."""
    tenants = state.client().tenants.list(limit=limit)
    if state.as_json:
        print_json_array(tenants)
        return
    rows = ((item.tenant_id, item.display_name, moment(item.create_time)) for item in tenants)
    print_table(["tenant", "name", "created"], rows)


@tenant.command()
@click.argument("tenant_id")
@json_option
@pass_state
def show(state: State, tenant_id: str) -> None:
    """Show one tenant."""
    found = state.client().tenants.get(tenant_id)
    print_json(found) if state.as_json else print_fields(_fields(found))


tenant.add_command(search_parameters)


def _fields(item: res.Tenant) -> dict[str, object]:
    return {
        "tenant": item.tenant_id,
        "name": item.display_name,
        "created": moment(item.create_time),
    }
