"""JSON as it goes into payloads."""

from __future__ import annotations

import json

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dumps(value: object) -> str:
    """Return compact JSON in which text stays readable; member order is kept."""
    return _ENCODER.encode(value)
