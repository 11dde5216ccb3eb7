"""Keys in settings: 32 bytes in base64url."""

from __future__ import annotations

import base64
import binascii

KEY_BYTES = 32


def key_from(encoded: str) -> bytes:
    """Return the key of 32 bytes that a base64url text stands for. Raises ValueError."""
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError(f"must be {KEY_BYTES} bytes in base64url")
    return key
