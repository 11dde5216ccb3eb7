"""`annals attachment`."""

from __future__ import annotations

import json
from typing import Any

import click

from annals.storage.v1 import relationship_service_pb2 as pb
from annals_client.cli.output import (
    as_dict,
    moment,
    print_fields,
    print_json,
    print_json_array,
    print_table,
)
from annals_client.cli.parameters import NATURAL_INT64, POSITIVE_INT32, JsonObject
from annals_client.cli.state import State, json_option, pass_state


@click.group()
def attachment() -> None:
    """Register and list references to bytes kept elsewhere."""


@attachment.command()
@click.argument("conversation_id")
@click.argument("uri")
@click.option("--event", "event_id", default="", help="The event that shows it.")
@click.option("--media-type", default="", help="Such as image/png.")
@click.option("--file-name", default="", help="For people.")
@click.option(
    "--size",
    "size_bytes",
    type=NATURAL_INT64,
    default=0,
    metavar="BYTES",
    help="Size in bytes; else unknown.",
)
@click.option("--sha256", default="", metavar="HEX", help="SHA-256 of the bytes, 64 hex digits.")
@click.option("--metadata", type=JsonObject(), help="Your own data: a JSON object.")
@click.option("--id", "attachment_id", default="", help="UUID; else made up.")
@json_option
@pass_state
def create(state: State, /, conversation_id: str, uri: str, **fields: Any) -> None:
    """Register the bytes at URI with a conversation; they stay where they are.

    \b
    Example:
      annals attachment create 0199c7a2-… s3://bucket/plan.png --media-type image/png
    """
    _print(state, state.client().attachments.create(conversation_id, uri, **fields))


@attachment.command()
@click.argument("attachment_id")
@json_option
@pass_state
def show(state: State, attachment_id: str) -> None:
    """Show one attachment."""
    _print(state, state.client().attachments.get(attachment_id))


@attachment.command("list")
@click.argument("conversation_id")
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def list_attachments(state: State, conversation_id: str, limit: int | None) -> None:
    """List the attachments of a conversation, newest first."""
    found = state.client().attachments.list(conversation_id, limit=limit)
    if state.as_json:
        print_json_array(found)
        return
    rows = (
        (it.attachment_id, it.uri, it.media_type, it.size_bytes or "", moment(it.create_time))
        for it in found
    )
    print_table(("attachment", "uri", "media type", "bytes", "created"), rows)


def _print(state: State, item: pb.Attachment) -> None:
    if state.as_json:
        print_json(item)
        return
    print_fields(
        {
            "attachment": item.attachment_id,
            "conversation": item.conversation_id,
            "uri": item.uri,
            "media type": item.media_type,
            "file name": item.file_name,
            "bytes": item.size_bytes or "",
            "sha256": item.sha256,
            "created": moment(item.create_time),
            "metadata": json.dumps(as_dict(item.metadata)) if item.metadata.fields else "",
        }
    )
