"""`annals export` and `annals watch`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from annals.storage.v1 import conversation_service_pb2 as pb
from annals_client.cli.events import print_event
from annals_client.cli.output import as_dict, stderr_console, stdout_console
from annals_client.cli.parameters import NATURAL_INT64, POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_names

_KIBIBYTE = 1024


@click.command()
@click.argument("conversation_id")
@click.option(
    "--format",
    "form",
    type=click.Choice(enum_names(pb.ExportFormat, "EXPORT_FORMAT_")),
    default="json-lines",
    show_default=True,
    help="json-lines holds everything and can be imported again.",
)
@click.option("--branch", type=POSITIVE_INT32, help="Else the current one; not json-lines.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="File to write; else stdout.",
)
@pass_state
def export(
    state: State, *, conversation_id: str, form: str, branch: int | None, output: Path | None
) -> None:
    """Write a conversation as a file.

    \b
    Examples:
      annals export 0199c7a2-… -o chat.jsonl && annals import chat.jsonl
      annals export 0199c7a2-… --format markdown | less
    """
    parts = state.client().conversations.export(conversation_id, form=form, branch=branch or 0)
    # The first part is read before the file is opened: a failure leaves no empty file.
    first = next(parts, b"")
    with _target(output) as file, _progress(output) as tell:
        written_bytes = 0
        for part in _joined(first, parts):
            file.write(part)
            written_bytes += len(part)
            tell(written_bytes)
    if output is not None:
        click.echo(f"{output}: {written_bytes:,} bytes", err=True)


@click.command()
@click.argument("conversation_id", default="")
@click.option("--agent", "agent_id", default="", help="All conversations of this agent instead.")
@click.option("--after", "after_seq", type=NATURAL_INT64, help="Begin after this seq.")
@click.option("--branch", type=POSITIVE_INT32, help="Only this branch.")
@click.option("--limit", type=POSITIVE_INT32, help="Stop after so many events.")
@click.option("--full", is_flag=True, help="Every word, not one line each.")
@json_option
@pass_state
def watch(
    state: State,
    *,
    conversation_id: str,
    agent_id: str,
    after_seq: int | None,
    branch: int | None,
    limit: int | None,
    full: bool,
) -> None:
    """Print new events as they are stored, until interrupted. With --json an event a line."""
    if bool(conversation_id) == bool(agent_id):
        raise click.UsageError("name a conversation or --agent, one of them")
    events = state.client().events.watch(
        conversation_id, agent_id=agent_id, after_seq=after_seq, branch=branch or 0
    )
    console = stdout_console()
    for number, event in enumerate(events, start=1):
        if state.as_json:
            click.echo(_json_line(as_dict(event)))
        else:
            lead = f"{event.conversation_id}  " if agent_id else ""
            print_event(console, event, full=full, lead=lead)
        sys.stdout.flush()
        if number == limit:
            return


def _json_line(fields: dict[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False)


@contextmanager
def _target(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        return
    with path.open("wb") as file:
        yield file


@contextmanager
def _progress(path: Path | None) -> Iterator[Callable[[int], None]]:
    console = stderr_console()
    if path is None or not console.is_terminal:
        yield lambda _bytes: None
        return
    with console.status(f"{path.name}: 0 KiB") as status:
        yield lambda written: status.update(f"{path.name}: {written // _KIBIBYTE:,} KiB")


def _joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
