"""`annals status`."""

from __future__ import annotations

from collections.abc import Callable

import click

from annals.storage.v1 import index_service_pb2 as pb
from annals_client.cli.failures import describe
from annals_client.cli.output import as_dict, print_fields, print_json
from annals_client.cli.state import State, json_option, pass_state
from annals_client.errors import AnnalsClientError

SERVING = "serving"


@click.command()
@click.option("--conversation", "conversation_id", default="", help="Only its backlog.")
@json_option
@pass_state
def status(state: State, conversation_id: str) -> None:
    """Show the health of both services and what waits to be indexed.

    Exits with 1 when a service does not serve.
    """
    client = state.client()
    services = {
        "storage": _health(client.health.storage),
        "context": _health(client.health.context),
    }
    index = None
    if services["storage"] == SERVING:
        index = client.index.status(conversation_id=conversation_id)
    _print(state, services, index)
    if set(services.values()) != {SERVING}:
        raise click.exceptions.Exit(1)


def _health(check: Callable[[], str]) -> str:
    try:
        return check()
    except AnnalsClientError as error:
        return describe(error)


def _print(state: State, services: dict[str, str], index: pb.GetIndexStatusResponse | None) -> None:
    if state.as_json:
        print_json({**services, "index": as_dict(index) if index else None})
        return
    print_fields(services)
    if index is not None:
        print_fields(_index_fields(index))


def _index_fields(index: pb.GetIndexStatusResponse) -> dict[str, object]:
    building = f"generation {index.building_generation}, {index.build_progress:.0%}"
    return {
        "waiting": index.pending_count,
        "parked": index.parked_count,
        "lag": f"{index.index_lag_ms} ms",
        "chunks": index.chunk_count,
        "points": index.point_count,
        "model": f"{index.embedding_model}, {index.embedding_dimensions} dimensions",
        **({"being built": building} if index.building_generation else {}),
    }
