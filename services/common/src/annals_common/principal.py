"""Who is calling."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Scope(StrEnum):
    """What a key may do, as stored."""

    DATA = "data"
    TENANT_ADMIN = "tenant_admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. Without a tenant it is the installation's administrator."""

    tenant_id: UUID | None
    scopes: frozenset[Scope] = frozenset()
    api_key_id: UUID | None = None

    @property
    def is_admin(self) -> bool:
        """Whether this is the installation's administrator."""
        return self.tenant_id is None
