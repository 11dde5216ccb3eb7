"""Values on the command line that are more than a word: numbers, JSON, ends of relationships."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import click
from google.protobuf import descriptor_pool, json_format
from google.protobuf.message import Message

from annals.storage.v1 import relationship_service_pb2 as pb
from annals_client.values import NUMBER_TOO_LARGE, enum_names, struct, whole_number

NODE_KINDS = enum_names(pb.NodeKind, "NODE_KIND_")
_OF_LONG_NUMBERS = ("integer string conversion", "int too large")
_UNKNOWN_NAME = re.compile(r"Invalid enum value \S+ for enum type ([\w.]+)")


class WholeNumber(click.ParamType[int]):
    """A number that a field of the API can carry; whoever exceeds it is told which option it was.

    Its help says no range: no user comes near.
    """

    name = "integer"

    def __init__(self, low: int, high: int) -> None:
        self._range = click.IntRange(low, high)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert, or fail saying what may be."""
        number: int = self._range.convert(value, param, ctx)
        return number


POSITIVE_INT32 = WholeNumber(1, 2**31 - 1)
NATURAL_INT32 = WholeNumber(0, 2**31 - 1)
NATURAL_INT64 = WholeNumber(0, 2**63 - 1)


class JsonObject(click.ParamType[dict[str, Any]]):
    """A JSON object on the command line."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        """Decode, or fail saying why."""
        try:
            decoded = json.loads(value, parse_int=whole_number)
        except ValueError as error:
            self.fail(f"is not JSON: {error}", param, ctx)
        if not isinstance(decoded, dict):
            self.fail("is not a JSON object", param, ctx)
        try:
            struct(decoded)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return decoded


class JsonMessage(click.ParamType[Message]):
    """A message of the API as proto JSON; `-` is read from stdin."""

    name = "json"

    def __init__(self, kind: type[Message]) -> None:
        self._kind = kind

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Message:
        """Decode, or fail saying why."""
        if isinstance(value, Message):
            return value
        text = sys.stdin.read() if value == "-" else value
        try:
            return json_format.Parse(text, self._kind())
        except json_format.ParseError as error:
            self.fail(f"is no {self._kind.DESCRIPTOR.name} as JSON: {_why(error)}", param, ctx)


class Node(click.ParamType[tuple[str, str]]):
    """One end of a relationship, such as `event:0199c7a2-…`: its kind and its id."""

    name = "kind:id"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split at the first colon, or fail saying what is expected."""
        kind, colon, node_id = value.partition(":")
        if not colon or not node_id or kind not in NODE_KINDS:
            self.fail(
                f"{value!r} is not KIND:ID; KIND is one of {', '.join(NODE_KINDS)}", param, ctx
            )
        return kind, node_id


def _why(error: Exception) -> str:
    """Say what is wrong in words of ours where the libraries' own lead nowhere."""
    why = " ".join(str(error).split())
    if any(words in why for words in _OF_LONG_NUMBERS):
        return NUMBER_TOO_LARGE
    unknown = _UNKNOWN_NAME.search(why)
    if unknown is None:
        return why
    known = descriptor_pool.Default().FindEnumTypeByName(unknown[1]).values
    names = ", ".join(value.name for value in known if value.number)
    return f"{why}; there are {names}"
