"""Who is calling."""

from __future__ import annotations

from contextvars import ContextVar
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


_current: ContextVar[Principal] = ContextVar("annals_principal")


def current_principal() -> Principal:
    """Return who makes the running call. Raises LookupError outside an authenticated call."""
    return _current.get()


def set_current_principal(principal: Principal) -> None:
    """Remember who makes the running call, for the rest of it."""
    _current.set(principal)
