"""Tenants, agents and keys, as the domain sees them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from annals_common.principal import Scope
from annals_storage.domain.ownership import EndUserMode

KEY_PREFIX = "annals_"
PUBLISHABLE_PREFIX = "annals_pk_"
"""Tells people, and scanners of pages, that the key may stand in a browser."""
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
    end_user_mode: EndUserMode = EndUserMode.TRUSTED
    context_injection: dict[str, Any] = field(default_factory=dict)
    provider_logs_enabled: bool = False
    index_config: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AgentChange:
    """New values by field name; only the fields named are changed."""

    agent_id: UUID
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A credential, without its secret. With an agent it is publishable."""

    api_key_id: UUID
    display_name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    agent_id: UUID | None = None

    @property
    def publishable(self) -> bool:
        """Whether it may be kept in an end user's browser."""
        return self.agent_id is not None

    def is_valid_at(self, now: datetime) -> bool:
        """Whether the key is accepted at this moment."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Credential:
    """A key in use, and what the agent of a publishable one accepts of end users."""

    key: ApiKey
    agent_mode: EndUserMode | None = None


def new_key_secret(tenant_id: UUID, *, prefix: str = KEY_PREFIX) -> str:
    """Return a new secret. It names its tenant, so that the lookup of its hash runs under
    that tenant's row-level security like every other query.
    """
    raw = tenant_id.bytes + secrets.token_bytes(_SECRET_BYTES)
    return prefix + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def tenant_of_secret(secret: str) -> UUID | None:
    """Return the tenant a secret claims, or None when it is no secret of ours."""
    prefix = PUBLISHABLE_PREFIX if secret.startswith(PUBLISHABLE_PREFIX) else KEY_PREFIX
    if not secret.startswith(prefix):
        return None
    try:
        raw = base64.b64decode(secret[len(prefix) :], altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return UUID(bytes=raw[:16]) if len(raw) == _KEY_BYTES else None


def hash_secret(secret: str) -> bytes:
    """Return the SHA-256 of a secret; its 256 random bits need no slower hash."""
    return hashlib.sha256(secret.encode()).digest()
