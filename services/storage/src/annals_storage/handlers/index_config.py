"""An agent's index configuration: the API's message to what is stored and back.

It is stored by the names of the API, enums by their names too, and without what was not given.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format

from annals.storage.v1 import resources_pb2 as pb
from annals_common.index_bounds import INDEX_BOUNDS
from annals_common.validation import bounded, enum

FIELD = "agent.index_config"
_ENUMS: dict[str, dict[int, str]] = {
    "strategy": {number: name for name, number in pb.IndexStrategy.items()},
    "snippet_strategy": {number: name for name, number in pb.SnippetStrategy.items()},
}
"""By member, the numbers it may have."""


def read_index_config(agent: pb.Agent) -> dict[str, Any]:
    """Return what is stored. Raises FieldInvalidError with the member's path."""
    given = agent.index_config
    for name, bounds in INDEX_BOUNDS.items():
        if given.HasField(name):  # type: ignore[arg-type]
            low, high = bounds
            bounded(getattr(given, name), f"{FIELD}.{name}", low=low, high=high)
    for name, known in _ENUMS.items():
        enum(getattr(given, name), known, f"{FIELD}.{name}")
    return json_format.MessageToDict(given, preserving_proto_field_name=True)


def index_config_message(stored: dict[str, Any]) -> pb.IndexConfig | None:
    """Return the message; None when nothing was configured."""
    if not stored:
        return None
    return json_format.ParseDict(stored, pb.IndexConfig(), ignore_unknown_fields=True)
