"""Contexts as bytes, for the cache that all processes share."""

from __future__ import annotations

import zlib
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

LEVEL = 1
"""Larger ones save a few per cent and take many times as long."""
MAX_PLAIN_BYTES = 64 * 1024 * 1024
"""What is unpacked at most: nobody's context is larger, whatever a body claims."""

T = TypeVar("T")


class Bodies(Generic[T]):
    """Values of one type, with everything in it, as compressed JSON."""

    def __init__(self, kind: type[T]) -> None:
        self._adapter = TypeAdapter(kind)

    def pack(self, value: T) -> bytes:
        """Return it as bytes."""
        return zlib.compress(self._adapter.dump_json(value), LEVEL)

    def unpack(self, body: bytes) -> T | None:
        """Return what was packed, or None when the bytes are not of this type."""
        try:
            plain = zlib.decompressobj().decompress(body, MAX_PLAIN_BYTES)
            return self._adapter.validate_json(plain)
        except (zlib.error, ValidationError):
            return None
