"""UUIDs: time-ordered for new rows, derived for retries."""

from __future__ import annotations

import hashlib
import secrets
import time
from uuid import UUID

_VERSION_AND_VARIANT = ~((0xF << 76) | (0x3 << 62))


def uuid7() -> UUID:
    """Return a new UUID version 7 (RFC 9562): milliseconds first, then randomness."""
    millis = time.time_ns() // 1_000_000
    return _stamped(7, (millis << 80) | secrets.randbits(80))


def derived_uuid(*parts: str | bytes) -> UUID:
    """Return the UUID version 8 (RFC 9562) that these parts always give."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return _stamped(8, int.from_bytes(digest.digest()[:16], "big"))


def _stamped(version: int, value: int) -> UUID:
    return UUID(int=(value & _VERSION_AND_VARIANT) | (version << 76) | (0b10 << 62))
