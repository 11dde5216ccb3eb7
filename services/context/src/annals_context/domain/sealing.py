"""Seals what clients keep for us: they may read it, but not change it or hand it to others."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import zlib

_MAC_BYTES = 32
_PURPOSE = b"annals view 1"


class SealBrokenError(Exception):
    """What was sealed was changed, is another owner's or was sealed under another key."""


class Seal:
    """Seals and opens short texts under one key, each for one owner."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, content: bytes, *, owner: bytes) -> str:
        """Return a text of letters, digits, "-" and "_"."""
        body = zlib.compress(content)
        sealed = self._mac(body, owner) + body
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def open(self, text: str, *, owner: bytes) -> bytes:
        """Return the content. Raises SealBrokenError."""
        try:
            padded = text + "=" * (-len(text) % 4)
            sealed = base64.b64decode(padded, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise SealBrokenError from error
        mac, body = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body, owner)):
            raise SealBrokenError
        return zlib.decompress(body)

    def _mac(self, body: bytes, owner: bytes) -> bytes:
        # The length keeps apart where the owner ends and the body begins.
        signed = b"".join((_PURPOSE, len(owner).to_bytes(8), owner, body))
        return hmac.digest(self._key, signed, hashlib.sha256)
