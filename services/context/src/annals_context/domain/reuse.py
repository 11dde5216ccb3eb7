"""How much of a context was there before: in a cache, or in the version before it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

OF_ONE_TURN = frozenset({"query", "current_message"})
"""What differs between two turns of a conversation that ask for contexts of the same kind."""


class Tier(StrEnum):
    """Where an answer came from."""

    NONE = "none"
    PROCESS = "process"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Reuse:
    """Where a context came from, and what it begins with as `previous_version` did.

    `previous_version` is empty, and the prefix 0, when there is none to compare with. Prefixes
    are of the payload.
    """

    tier: Tier = Tier.NONE
    previous_version: str = ""
    prefix_bytes: int = 0
    prefix_tokens: int = 0


def request_digest(
    request: Any, code_version: str, *, without: frozenset[str] = frozenset()
) -> bytes:
    """Return the SHA-256 of every field of a request, a dataclass, save those `without`.

    Raises TypeError for a field that has no one form as JSON.
    """
    fields = {name: value for name, value in asdict(request).items() if name not in without}
    identity = [code_version, type(request).__name__, fields]
    text = json.dumps(identity, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).digest()


def _plain(value: object) -> list[object]:
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no one form as JSON")


def shared_prefix(one: str, other: str) -> str:
    """Return what both begin with, in time that grows with n log n of the shorter."""
    if one == other:
        return one
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        # What precedes `low` is known to be the same.
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return one[:low]
