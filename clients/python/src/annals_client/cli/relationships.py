"""`annals relationship`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from annals.storage.v1 import relationship_service_pb2 as pb
from annals_client.cli.output import (
    moment,
    print_fields,
    print_json,
    print_json_array,
    print_table,
)
from annals_client.cli.parameters import POSITIVE_INT32, JsonObject, Node
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name, enum_names

_PREFIX = "RELATIONSHIP_TYPE_"
_TYPES = click.Choice(enum_names(pb.RelationshipType, _PREFIX))
_ENDS = click.Choice(enum_names(pb.RelationshipEnd, "RELATIONSHIP_END_"))
_COLUMNS = ("relationship", "source", "label", "target", "type", "score", "created")


@click.group()
def relationship() -> None:
    """Say how things refer to each other.

    A thing is KIND:ID, such as event:0199c7a2-…; kinds are event, conversation, memory,
    attachment, and external for anything of yours by a URI or a name.
    """


@relationship.command()
@click.argument("relationship_type", metavar="TYPE", type=_TYPES)
@click.argument("source", type=Node())
@click.argument("target", type=Node())
@click.option("--score", type=click.FloatRange(0, 1), help="How strongly; else not said.")
@click.option("--metadata", type=JsonObject(), help="Your own data: a JSON object.")
@json_option
@pass_state
def create(state: State, /, **fields: Any) -> None:
    """Store "SOURCE … TARGET"; storing it again updates score and metadata.

    `annals relationship types` lists the types and how they read.

    \b
    Example:
      annals relationship create corrects event:0199c7a3-… event:0199c7a2-… --score 0.9
    """
    made = state.client().relationships.create(**fields)
    if state.as_json:
        print_json(made)
        return
    print_fields(dict(zip(_COLUMNS, _row(made), strict=True)))


@relationship.command("list")
@click.argument("node", type=Node())
@click.option("--end", type=_ENDS, default="either", show_default=True, help="Which end NODE is.")
@click.option("--type", "types", multiple=True, type=_TYPES, help="Only of this type.")
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def list_relationships(state: State, /, node: tuple[str, str], **conditions: Any) -> None:
    """List the relationships of a NODE (KIND:ID), newest first."""
    found = state.client().relationships.list(node, **conditions)
    if state.as_json:
        print_json_array(found)
        return
    print_table(_COLUMNS, map(_row, found))


@relationship.command()
@click.argument("relationship_ids", nargs=-1, required=True)
@pass_state
def delete(state: State, relationship_ids: Sequence[str]) -> None:
    """Remove relationships for good; the things they join stay."""
    client = state.client()
    for relationship_id in relationship_ids:
        client.relationships.delete(relationship_id)
        click.echo(f"{relationship_id} deleted", err=True)


@relationship.command()
@json_option
@pass_state
def types(state: State) -> None:
    """List the fixed types and how they read, most specific first."""
    found = state.client().relationships.types()
    if state.as_json:
        print_json_array(found)
        return
    rows = (
        (
            enum_name(pb.RelationshipType, _PREFIX, item.type),
            _kind(item.source_kind),
            item.label,
            _kind(item.target_kind),
            item.inverse_label,
        )
        for item in found
    )
    print_table(("type", "source", "label", "target", "seen from the target"), rows)


def _row(item: pb.Relationship) -> tuple[object, ...]:
    return (
        item.relationship_id,
        _node(item.source),
        item.label,
        _node(item.target),
        enum_name(pb.RelationshipType, _PREFIX, item.type),
        f"{item.score:.3f}" if item.HasField("score") else "",
        moment(item.create_time),
    )


def _node(node: pb.Node) -> str:
    return f"{_kind(node.kind)}:{node.id}"


def _kind(kind: int) -> str:
    return enum_name(pb.NodeKind, "NODE_KIND_", kind) if kind else "any"
