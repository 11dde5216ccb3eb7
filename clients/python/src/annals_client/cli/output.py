"""Prints results: for people on a terminal, plain in a pipe, JSON on demand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from itertools import chain
from typing import Any

import click
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.markup import escape
from rich.table import Table

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def stdout_console() -> Console:
    """A console on stdout: coloured on a terminal only."""
    return Console(highlight=False)


def stderr_console() -> Console:
    """A console on stderr, for progress and notes."""
    return Console(stderr=True, highlight=False)


def as_dict(message: Message) -> dict[str, Any]:
    """Write a message as proto JSON with the names of the proto, zeros included."""
    return MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def print_json(value: Message | Mapping[str, Any]) -> None:
    """Print one JSON object."""
    fields = as_dict(value) if isinstance(value, Message) else value
    click.echo(json.dumps(fields, ensure_ascii=False, indent=2))


def print_json_array(messages: Iterable[Message]) -> None:
    """Print a JSON array, an element a line, as the elements arrive."""
    lead = "["
    for message in messages:
        click.echo(f"{lead}\n{json.dumps(as_dict(message), ensure_ascii=False)}", nl=False)
        lead = ","
    click.echo("\n]" if lead == "," else "[]")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on a terminal, tab-separated lines elsewhere."""
    console = stdout_console()
    if not console.is_terminal:
        _print_tabbed(columns, rows)
        return
    table = Table(*columns, header_style="bold", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(escape(visible(cell)) for cell in row))
    console.print(table)


def print_fields(fields: Mapping[str, object]) -> None:
    """Print what is not empty, a field a line."""
    shown = {name: value for name, value in fields.items() if value not in ("", None)}
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        click.echo(f"{name:<{width}}  {visible(value)}")


def moment(stamp: Timestamp) -> str:
    """Write a time in UTC to the second; "" for one that is not set."""
    if not stamp.seconds:
        return ""
    return stamp.ToDatetime(tzinfo=UTC).strftime("%Y-%m-%d %H:%M:%S")


def visible(value: object) -> str:
    """Write control characters, save line ends and tabs, so that no terminal obeys them."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", str(value))


def one_line(text: str, chars: int) -> str:
    """Write text on one line of at most `chars` characters."""
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= chars else f"{flat[: chars - 1]}…"


def _print_tabbed(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    lines = ("\t".join(" ".join(visible(cell).split()) for cell in row) for row in rows)
    # The first row is read before the heading is printed: the reading may fail.
    first = next(lines, None)
    click.echo("\t".join(columns))
    for line in chain([] if first is None else [first], lines):
        click.echo(line)
