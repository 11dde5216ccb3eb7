"""Python values to protobuf's, and names to enum numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

MAX_DIGITS = 4_300
NUMBER_TOO_LARGE = "a number is beyond what a double can hold"


def timestamp(moment: datetime | None) -> Timestamp | None:
    """Convert; a naive datetime counts as UTC."""
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp


def struct(fields: Mapping[str, Any] | None) -> Struct | None:
    """Convert; None stays None. Raises ValueError for values JSON does not have."""
    if fields is None:
        return None
    converted = Struct()
    try:
        converted.update(dict(fields))
    except OverflowError:
        raise ValueError(NUMBER_TOO_LARGE) from None
    return converted


def whole_number(digits: str) -> int:
    """Read an integer of a JSON text. Raises ValueError for more digits than Python reads."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits; at most {MAX_DIGITS:,} can be read")
    return int(digits)


def json_text(value: object) -> str:
    """Return text as it is and anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def enum_number(enum: Any, prefix: str, value: int | str) -> Any:
    """Turn `user`, `ROLE_USER` or the number into the number. Raises ValueError."""
    if isinstance(value, int):
        return value
    name = value.upper().replace("-", "_")
    full = name if name.startswith(prefix) else f"{prefix}{name}"
    if full in enum.keys():  # noqa: SIM118 - an enum wrapper, no mapping
        return enum.Value(full)
    raise ValueError(f"{value!r} is none of {', '.join(enum_names(enum, prefix))}")


def enum_numbers(enum: Any, prefix: str, values: Sequence[int | str]) -> list[Any]:
    """Turn each value into its number. Raises ValueError."""
    return [enum_number(enum, prefix, value) for value in values]


def enum_names(enum: Any, prefix: str) -> list[str]:
    """Names as the command line writes them, without the unspecified one."""
    names = [name.removeprefix(prefix).lower().replace("_", "-") for name in enum.keys()]  # noqa: SIM118
    return [name for name in names if name != "unspecified"]


def enum_name(enum: Any, prefix: str, number: int) -> str:
    """Return the short name of a number: `user` for ROLE_USER."""
    return str(enum.Name(number)).removeprefix(prefix).lower().replace("_", "-")
