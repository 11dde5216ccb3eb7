"""`annals signing-key`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from annals.storage.v1 import resources_pb2 as res
from annals_client.cli.agents import tenant_option
from annals_client.cli.keys import expires_option
from annals_client.cli.output import (
    moment,
    print_fields,
    print_json,
    print_json_array,
    print_table,
)
from annals_client.cli.parameters import POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name, enum_names

_PREFIX = "SIGNING_ALGORITHM_"
_ALGORITHMS = click.Choice(enum_names(res.SigningAlgorithm, _PREFIX))
_COLUMNS = (
    *("signing key", "name", "algorithm", "issuer", "audience"),
    *("created", "expires", "revoked"),
)


@click.group("signing-key")
def signing_key() -> None:
    """Manage the keys by which you sign tokens of end users. Needs a key with tenant-admin."""


@signing_key.command()
@click.argument("algorithm", metavar="ALGORITHM", type=_ALGORITHMS)
@click.option("--issuer", required=True, help="What `iss` of the tokens must be.")
@click.option("--audience", required=True, help="What `aud` of the tokens must be.")
@click.option(
    "--public-key",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The public key as PEM; all but hs256 need it.",
)
@click.option("--name", "display_name", default="", help="For people.")
@expires_option
@tenant_option
@json_option
@pass_state
def create(state: State, /, algorithm: str, path: Path | None, **fields: Any) -> None:
    """Register a public key (rs256, es256, eddsa), or with hs256 have a secret made, which is
    printed once.

    \b
    Examples:
      annals signing-key create hs256 --issuer https://shop.example --audience annals
      annals signing-key create es256 --issuer https://shop.example --audience annals \\
        --public-key public.pem
    """
    created = state.client().signing_keys.create(algorithm, public_key_pem=_pem(path), **fields)
    if state.as_json:
        print_json(created)
        return
    shown = dict(zip(_COLUMNS, _row(created.signing_key), strict=True))
    print_fields({**shown, "secret": created.secret})
    if created.secret:
        click.echo("Keep the secret: it is not shown again.", err=True)


@signing_key.command("list")
@tenant_option
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def list_keys(state: State, tenant_id: str, limit: int | None) -> None:
    """List signing keys, oldest first, without secrets."""
    found = state.client().signing_keys.list(tenant_id=tenant_id, limit=limit)
    if state.as_json:
        print_json_array(found)
        return
    print_table(_COLUMNS, map(_row, found))


@signing_key.command()
@click.argument("signing_key_id")
@tenant_option
@json_option
@pass_state
def revoke(state: State, signing_key_id: str, tenant_id: str) -> None:
    """Refuse the tokens of a key from now on."""
    revoked = state.client().signing_keys.revoke(signing_key_id, tenant_id=tenant_id)
    if state.as_json:
        print_json(revoked)
        return
    print_fields(dict(zip(_COLUMNS, _row(revoked), strict=True)))


def _pem(path: Path | None) -> str:
    text = path.read_text(encoding="utf-8") if path else ""
    if "PRIVATE KEY" in text:
        # It must not leave this machine.
        raise click.UsageError(
            f"{path}: is a private key; --public-key takes the public one, see openssl pkey -pubout"
        )
    return text


def _row(item: res.SigningKey) -> tuple[str, ...]:
    times = (item.create_time, item.expire_time, item.revoke_time)
    return (
        item.signing_key_id,
        item.display_name,
        enum_name(res.SigningAlgorithm, _PREFIX, item.algorithm),
        item.issuer,
        item.audience,
        *map(moment, times),
    )
