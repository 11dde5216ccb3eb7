"""Lines of an export in JSON Lines: written, read, counted."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from annals_storage.domain.events import Event, EventBody
from annals_storage.domain.transfer_fields import Field, LineInvalidError
from annals_storage.domain.transfer_lines import (
    EVENT_FIELDS,
    FORMAT,
    LINES,
    VERSION,
    Kind,
    Values,
    check_values,
)

_TIMES = frozenset(
    ("event_time", "created_at", "edited_at", "deleted_at", "erased_at")
)  # fmt: skip
# One encoder for all: json.dumps would make one for each member.
_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_PLACES = {kind: place for place, kind in enumerate(Kind)}
_BODY_FIELDS = EventBody.__slots__


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, checked by itself. `number` counts from 1."""

    kind: Kind
    values: dict[str, Any]
    number: int = 0

    def encoded(self) -> str:
        """Return the line as an export writes it."""
        return encode(self.kind, self.values)

    def row(self) -> dict[str, Any]:
        """Return what PostgreSQL reads the columns of the line's table from."""
        fields = {field.name: field for field in LINES[self.kind]}
        return {name: fields[name].store(value) for name, value in self.values.items()}


def place_of(kind: Kind) -> int:
    """Return where lines of a kind stand in a file; observations stand with their events."""
    return _PLACES[Kind.EVENT] if kind is Kind.OBSERVATION else _PLACES[kind]


def dumped(kind: Kind, row: Values) -> dict[str, Any]:
    """Return the members of a line from the columns of a row."""
    return _dump(LINES[kind], row)


def event_values(event: Event) -> dict[str, Any]:
    """Return the members of an event's line."""
    return _dump(EVENT_FIELDS, event_columns(event))


def former_values(payload: Values) -> dict[str, Any]:
    """Return the members of a former version of an event, from its row as JSON."""
    values = {field.name: payload[field.name] for field in EVENT_FIELDS if field.name in payload}
    for name in _TIMES & set(values):
        values[name] = datetime.fromisoformat(values[name])
    return _dump(EVENT_FIELDS, values)


def event_columns(event: Event) -> dict[str, Any]:
    """Return an event as the columns of its table."""
    columns = {name: getattr(event.body, name) for name in _BODY_FIELDS}
    columns |= {name: getattr(event, name) for name in Event.__slots__ if name != "body"}
    columns["usage"] = asdict(event.usage) if event.usage else None
    columns["metadata"] = event.metadata or None
    return columns


def _dump(fields: tuple[Field, ...], row: Values) -> dict[str, Any]:
    present = ((field, row[field.name]) for field in fields if row.get(field.name) is not None)
    return {field.name: field.dump(value) for field, value in present}


def encode(kind: Kind, values: Values) -> str:
    """Return a line without its end: members in the order of the format, those within by name."""
    names = (field.name for field in LINES[kind] if field.name in values)
    members = (f'"{name}":{_json(values[name])}' for name in names)
    return f'{{"line":"{kind}",{",".join(members)}}}'


def read(parsed: Any, number: int) -> Line:
    """Return a line from its JSON. Raises LineInvalidError."""
    if not isinstance(parsed, dict):
        raise LineInvalidError("must be a JSON object")
    values = dict(parsed)
    kind = values.pop("line", None)
    if not isinstance(kind, str) or kind not in set(Kind):
        raise LineInvalidError(f"needs the member line: one of {', '.join(Kind)}")
    check_values(LINES[Kind(kind)], values)
    return Line(Kind(kind), values, number)


class Digest:
    """The hash of a conversation's lines, the end left out, and how many there are of each kind."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.lines: dict[str, int] = {}

    def take(self, kind: Kind, encoded: str) -> None:
        """Count a line in."""
        self._hash.update(f"{encoded}\n".encode())
        self.lines[kind.value] = self.lines.get(kind.value, 0) + 1

    def hexdigest(self) -> str:
        """Return the hash so far."""
        return self._hash.hexdigest()

    def end(self) -> str:
        """Return the line that ends the conversation."""
        return encode(Kind.END, {"lines": self.lines, "sha256": self.hexdigest()})


def header(tenant_id: UUID, conversation_id: UUID) -> dict[str, Any]:
    """Return the members of the first line."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "tenant_id": str(tenant_id),
        "conversation_id": str(conversation_id),
    }
