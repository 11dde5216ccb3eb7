"""Keys with which tenants sign the tokens of their end users."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

MIN_RSA_BITS = 2_048
MAX_RSA_BITS = 8_192
"""Verifying with a longer key would hold up other calls."""


class SigningAlgorithm(StrEnum):
    """Algorithm of a signature (RFC 7518, RFC 8037), as stored and as a token's `alg`."""

    HS256 = "HS256"
    RS256 = "RS256"
    ES256 = "ES256"
    EDDSA = "EdDSA"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A stored key. Either the public key or the encrypted secret is there."""

    signing_key_id: UUID
    display_name: str
    algorithm: SigningAlgorithm
    issuer: str
    audience: str
    created_at: datetime
    public_key_pem: str | None = None
    encrypted_secret: bytes | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid_at(self, now: datetime) -> bool:
        """Whether tokens of this key are accepted at this moment."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class NewSigningKey:
    """A validated key on its way into the store."""

    signing_key_id: UUID
    display_name: str
    algorithm: SigningAlgorithm
    issuer: str
    audience: str
    public_key_pem: str | None = None
    encrypted_secret: bytes | None = field(default=None, repr=False)
    expires_at: datetime | None = None


def canonical_public_key(pem: str, algorithm: SigningAlgorithm) -> str:
    """Return the public key as SubjectPublicKeyInfo in PEM.

    Raises ValueError, with what would be accepted, for anything else than a public key of the
    algorithm and of sufficient size.
    """
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("must be a public key in PEM (BEGIN PUBLIC KEY)") from error
    if wanted := _unmet(key, algorithm):
        raise ValueError(f"must be {wanted}")
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _unmet(key: object, algorithm: SigningAlgorithm) -> str:
    """What the algorithm needs and the key is not; empty when it is."""
    match algorithm:
        case SigningAlgorithm.RS256:
            fits = isinstance(key, RSAPublicKey) and MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS
            wanted = f"an RSA key of {MIN_RSA_BITS:,}–{MAX_RSA_BITS:,} bits for RS256"
        case SigningAlgorithm.ES256:
            fits = isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
            wanted = "a key on the curve P-256 for ES256"
        case SigningAlgorithm.EDDSA:
            fits, wanted = isinstance(key, Ed25519PublicKey), "an Ed25519 key for EdDSA"
        case SigningAlgorithm.HS256:
            fits, wanted = False, "empty: the server makes the secret of HS256"
    return "" if fits else wanted
