"""`annals key`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from annals.storage.v1 import resources_pb2 as res
from annals_client.cli.agents import tenant_option
from annals_client.cli.output import (
    moment,
    print_fields,
    print_json,
    print_json_array,
    print_table,
)
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name, enum_names

_PREFIX = "API_KEY_SCOPE_"
_SCOPES = enum_names(res.ApiKeyScope, _PREFIX)


@click.group()
def key() -> None:
    """Create, list and revoke API keys."""


@key.command()
@click.argument("name", default="")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=["data"],
    show_default=True,
    type=click.Choice(_SCOPES),
    help="What the key may do; may be repeated.",
)
@click.option("--expires", type=click.DateTime(), help="Not accepted from then on (UTC).")
@tenant_option
@json_option
@pass_state
def create(
    state: State, name: str, scopes: Sequence[str], expires: datetime | None, tenant_id: str
) -> None:
    """Create a key; its secret is printed once."""
    expire_time = expires.replace(tzinfo=UTC) if expires else None
    created = state.client().keys.create(
        name, scopes=scopes, expire_time=expire_time, tenant_id=tenant_id
    )
    if state.as_json:
        print_json(created)
        return
    fields = _row(created.api_key)
    print_fields({**dict(zip(_COLUMNS, fields, strict=True)), "api_key": created.api_key_secret})
    click.echo("Keep the key: it is not shown again.", err=True)


@key.command("list")
@tenant_option
@json_option
@pass_state
def list_keys(state: State, tenant_id: str) -> None:
    """List keys, oldest first, without secrets."""
    keys = state.client().keys.list(tenant_id=tenant_id)
    if state.as_json:
        print_json_array(keys)
        return
    print_table(_COLUMNS, map(_row, keys))


@key.command()
@click.argument("key_id")
@tenant_option
@json_option
@pass_state
def revoke(state: State, key_id: str, tenant_id: str) -> None:
    """Refuse a key from now on."""
    revoked = state.client().keys.revoke(key_id, tenant_id=tenant_id)
    if state.as_json:
        print_json(revoked)
        return
    print_fields(dict(zip(_COLUMNS, _row(revoked), strict=True)))


_COLUMNS = ("key", "name", "scopes", "created", "expires", "revoked")


def _row(item: res.ApiKey) -> tuple[str, ...]:
    scopes = ", ".join(enum_name(res.ApiKeyScope, _PREFIX, scope) for scope in item.scopes)
    times = (item.create_time, item.expire_time, item.revoke_time)
    return (item.api_key_id, item.display_name, scopes, *map(moment, times))
