"""Secrets at rest: AES-256-GCM under a key that the database does not hold."""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


class SealBrokenError(Exception):
    """What was sealed was changed, moved to another place or sealed under another key."""


class SecretBox:
    """Seals and opens short secrets. `place` says where one is kept and must be the same again."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, secret: bytes, *, place: bytes) -> bytes:
        """Return nonce and ciphertext."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret, place)

    def open(self, sealed: bytes, *, place: bytes) -> bytes:
        """Return the secret. Raises SealBrokenError."""
        nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, ciphertext, place)
        except (InvalidTag, ValueError) as error:
            raise SealBrokenError from error
