"""The options by which commands describe an event."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import build
from annals_client.cli.parameters import JsonMessage, JsonObject
from annals_client.values import enum_names

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
ROLES = click.Choice(enum_names(res.Role, "ROLE_"))


@dataclass(frozen=True, slots=True)
class Words:
    """What the options of `event_options` say about the event."""

    role: str | None
    author: str
    tool_call: str | None
    tool_result: str | None
    tool: str
    failed: bool
    note: bool
    error_type: str | None
    whole: pb.NewEvent | None
    parent: str
    idempotency_key: str
    metadata: dict[str, Any] | None

    def __post_init__(self) -> None:
        kinds = (self.role, self.tool_call, self.tool_result, self.note or None, self.error_type)
        if sum(kind is not None for kind in (*kinds, self.whole)) > 1:
            raise click.UsageError(
                "use one of --role, --tool-call, --tool-result, --note, --error and --event,"
                " not several"
            )

    def event(self, text: str | None) -> pb.NewEvent:
        """Build the event these options describe. `text` None or "-" is read from stdin."""
        if self.whole is not None:
            return self._whole(text)
        words = sys.stdin.read() if text is None or text == "-" else text
        fields = self._fields()
        if self.tool_call is not None:
            return build.tool_call(self.tool_call, self.tool, words, **fields)
        if self.tool_result is not None:
            return build.tool_result(
                self.tool_result, words, tool_name=self.tool, is_error=self.failed, **fields
            )
        if self.error_type is not None:
            return build.error(self.error_type, words, **fields)
        if self.note:
            return build.system(words, **fields)
        return build.message(self.role or "user", words, author_name=self.author, **fields)

    def _whole(self, text: str | None) -> pb.NewEvent:
        others = (self.author, self.tool, self.failed, self.parent, self.idempotency_key)
        if self.whole is None or text is not None or any((*others, self.metadata)):
            raise click.UsageError("--event holds the whole event; put TEXT and the rest into it")
        return self.whole

    def _fields(self) -> build.EventFields:
        fields = build.EventFields(
            idempotency_key=self.idempotency_key, parent_event_id=self.parent
        )
        if self.metadata is not None:
            fields["metadata"] = self.metadata
        return fields


_OPTIONS = (
    click.option("--role", type=ROLES, help="Who says it (default user)."),
    click.option("--author", default="", help="Name of the speaker."),
    click.option("--tool-call", metavar="ID", help="A call of --tool; TEXT is its JSON input."),
    click.option("--tool-result", metavar="ID", help="The answer to call ID; TEXT is the result."),
    click.option("--tool", default="", metavar="NAME", help="Name of the tool."),
    click.option("--failed", is_flag=True, help="The tool failed."),
    click.option("--note", is_flag=True, help="Something the application notes."),
    click.option("--error", "error_type", metavar="TYPE", help="A failure, such as rate_limit."),
    click.option(
        "--event",
        "whole",
        type=JsonMessage(pb.NewEvent),
        help="Instead of TEXT: all of the event as JSON, as the API names it; - is stdin.",
    ),
    click.option("--parent", default="", metavar="EVENT", help="The event it answers."),
    click.option(
        "--idempotency-key", default="", help="The same key and text store nothing twice."
    ),
    click.option("--metadata", type=JsonObject(), help="Your own data: a JSON object."),
)


def event_options(command: CommandT) -> CommandT:
    """Accept the options that `Words` is made of."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
