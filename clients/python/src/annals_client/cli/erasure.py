"""`annals erase` and `annals verify-erasure`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from annals.storage.v1 import erasure_service_pb2 as pb
from annals_client.cli.output import moment, print_fields, print_json, stderr_console
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name

_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group()
def erase() -> None:
    """Erase for good, everywhere, and print the receipt. Needs a key with tenant-admin.

    To hide and be able to restore, use `annals delete` and `annals conversation delete`.
    An interrupted erasure is finished by the same command again.
    """


@erase.command()
@click.argument("event_id")
@_yes
@json_option
@pass_state
def event(state: State, event_id: str, *, yes: bool) -> None:
    """Erase an event: only its place stays."""
    _confirm(f"event {event_id} with its history", yes=yes)
    _run(state, lambda: state.client().erasure.event(event_id))


@erase.command()
@click.argument("conversation_id")
@_yes
@json_option
@pass_state
def conversation(state: State, conversation_id: str, *, yes: bool) -> None:
    """Erase a conversation with everything in it."""
    _confirm(f"conversation {conversation_id} with everything in it", yes=yes)
    _run(state, lambda: state.client().erasure.conversation(conversation_id))


@erase.command()
@click.argument("user_id")
@_yes
@json_option
@pass_state
def user(state: State, user_id: str, *, yes: bool) -> None:
    """Erase every conversation of a user and every trace of their id."""
    _confirm(f"every conversation of user {user_id}", yes=yes)
    _run(state, lambda: state.client().erasure.user(user_id))


@erase.command()
@click.argument("tenant_id")
@click.argument("display_name")
@_yes
@json_option
@pass_state
def tenant(state: State, tenant_id: str, display_name: str, *, yes: bool) -> None:
    """Erase a tenant, named also by its DISPLAY_NAME. Needs the admin key."""
    _confirm(f"tenant {display_name} ({tenant_id}) with everything it has", yes=yes)
    _run(state, lambda: state.client().erasure.tenant(tenant_id, display_name))


@click.command("verify-erasure")
@click.argument("receipt_id")
@click.option("--user", "user_id", default="", help="For the receipt of a user: the user id.")
@click.option("--tenant", "tenant_id", default="", help="Whose receipt, with the admin key.")
@json_option
@pass_state
def verify_erasure(state: State, *, receipt_id: str, user_id: str, tenant_id: str) -> None:
    """Look again for what a receipt says is gone. Exit code 1 when something is found."""
    verify = state.client().erasure.verify
    with stderr_console().status("looking everywhere"):
        answer = verify(receipt_id, user_id=user_id, tenant_id=tenant_id)
    if state.as_json:
        print_json(answer)
    else:
        print_fields(
            {
                "verified": "yes" if answer.verified else "no",
                "receipt unchanged": "yes" if answer.digest_matches else "no",
                **_counts(answer.remaining),
            }
        )
    if not answer.verified:
        click.get_current_context().exit(1)


def _confirm(what: str, *, yes: bool) -> None:
    if not yes:
        click.confirm(f"Erase {what}? It cannot be undone", abort=True, err=True)


def _run(state: State, erase_it: Callable[[], pb.ErasureReceipt]) -> None:
    with stderr_console().status("erasing"):
        receipt = erase_it()
    if state.as_json:
        print_json(receipt)
        return
    print_fields(
        {
            "receipt": receipt.receipt_id,
            "scope": enum_name(pb.ErasureScope, "ERASURE_SCOPE_", receipt.scope),
            "subject": receipt.subject,
            "begun": moment(receipt.start_time),
            "done": moment(receipt.complete_time),
            "digest": receipt.digest,
            **_counts(receipt.counts),
        }
    )


def _counts(counts: Iterable[pb.ErasedCount]) -> dict[str, object]:
    return {item.kind: item.count for item in counts}
