"""`annals key`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

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


_KIND_PREFIX = "API_KEY_KIND_"
expires_option = click.option(
    "--expires",
    "expire_time",
    type=click.DateTime(),
    help="Not accepted from then on (UTC); else never expires.",
)


@click.group()
def key() -> None:
    """Create, list and revoke API keys."""


@key.command()
@click.argument("name", default="")
@click.option(
    "--kind",
    type=click.Choice(enum_names(res.ApiKeyKind, _KIND_PREFIX)),
    default="secret",
    show_default=True,
    help="secret stays on servers; publishable may stand in browsers and needs --agent.",
)
@click.option("--agent", "agent_id", default="", help="The one agent of a publishable key.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(_SCOPES),
    help="What a secret key may do (default data); may be repeated.",
)
@expires_option
@tenant_option
@json_option
@pass_state
def create(
    state: State,
    *,
    name: str,
    kind: str,
    agent_id: str,
    scopes: Sequence[str],
    expire_time: datetime | None,
    tenant_id: str,
) -> None:
    """Create a key; its secret is printed once.

    \b
    Examples:
      annals key create backend --scope data --scope tenant-admin
      annals key create website --kind publishable --agent 0199c7a2-…
    """
    created = state.client().keys.create(
        name,
        kind=kind,
        agent_id=agent_id,
        scopes=scopes or None,
        expire_time=expire_time,
        tenant_id=tenant_id,
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


@key.command()
@json_option
@pass_state
def caller(state: State) -> None:
    """Show whose key this is, what it may do, and for which end user."""
    found = state.client().keys.caller()
    if state.as_json:
        print_json(found)
        return
    verified = ", proved by a token" if found.user_verified else ""
    print_fields(
        {
            "tenant": found.tenant_id or "none: the admin key",
            "key": found.api_key_id,
            "kind": enum_name(res.ApiKeyKind, _KIND_PREFIX, found.kind) if found.kind else "",
            "scopes": _scopes(found.scopes),
            "agent": found.agent_id,
            "user": f"{found.user_id}{verified}" if found.user_id else "",
            "session": found.session_id,
        }
    )


_COLUMNS = ("key", "name", "scopes", "created", "expires", "revoked", "kind", "agent")


def _row(item: res.ApiKey) -> tuple[str, ...]:
    times = (item.create_time, item.expire_time, item.revoke_time)
    kind = enum_name(res.ApiKeyKind, _KIND_PREFIX, item.kind)
    scopes = _scopes(item.scopes)
    return (
        *(item.api_key_id, item.display_name, scopes, *map(moment, times)),
        *(kind, item.agent_id),
    )


def _scopes(scopes: Iterable[int]) -> str:
    return ", ".join(enum_name(res.ApiKeyScope, _PREFIX, scope) for scope in scopes)
