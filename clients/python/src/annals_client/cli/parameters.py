"""Values on the command line that are more than a word: JSON, and ends of relationships."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from google.protobuf import json_format
from google.protobuf.message import Message

from annals.storage.v1 import relationship_service_pb2 as pb
from annals_client.values import enum_names

NODE_KINDS = enum_names(pb.NodeKind, "NODE_KIND_")


class JsonObject(click.ParamType[dict[str, Any]]):
    """A JSON object on the command line."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        """Decode, or fail saying why."""
        try:
            decoded = json.loads(value)
        except ValueError as error:
            self.fail(f"is not JSON: {error}", param, ctx)
        if not isinstance(decoded, dict):
            self.fail("is not a JSON object", param, ctx)
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
            why = " ".join(str(error).split())
            self.fail(f"is no {self._kind.DESCRIPTOR.name} as JSON: {why}", param, ctx)


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
