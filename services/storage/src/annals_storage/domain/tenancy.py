"""Tenants, agents and keys, as the domain sees them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from annals_common.principal import Scope

KEY_PREFIX = "annals_"
_SECRET_BYTES = 32
_KEY_BYTES = 16 + _SECRET_BYTES


@dataclass(frozen=True, slots=True)
class Tenant:
    """A customer of the installation."""

    tenant_id: UUID
    display_name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Agent:
    """What answers in a conversation."""

    agent_id: UUID
    display_name: str
    system_prompt: str
    model: str
    temperature: float | None
    tools_json: str
    output_schema_json: str
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A credential, without its secret."""

    api_key_id: UUID
    display_name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid_at(self, now: datetime) -> bool:
        """Whether the key is accepted at this moment."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def new_key_secret(tenant_id: UUID) -> str:
    """Return a new secret. It names its tenant, so that the lookup of its hash runs under
    that tenant's row-level security like every other query.
    """
    raw = tenant_id.bytes + secrets.token_bytes(_SECRET_BYTES)
    return KEY_PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def tenant_of_secret(secret: str) -> UUID | None:
    """Return the tenant a secret claims, or None when it is no secret of ours."""
    if not secret.startswith(KEY_PREFIX):
        return None
    try:
        raw = base64.b64decode(secret[len(KEY_PREFIX) :], altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return UUID(bytes=raw[:16]) if len(raw) == _KEY_BYTES else None


def hash_secret(secret: str) -> bytes:
    """Return the SHA-256 of a secret; its 256 random bits need no slower hash."""
    return hashlib.sha256(secret.encode()).digest()
