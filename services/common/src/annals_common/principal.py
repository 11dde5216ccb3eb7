"""Who is calling."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID


class Scope(StrEnum):
    """What a key may do, as stored."""

    DATA = "data"
    TENANT_ADMIN = "tenant_admin"


@dataclass(frozen=True, slots=True)
class EndUser:
    """Whom a call is made for. `verified`: a signed token proved the user id."""

    session_id: str | None = None
    user_id: str | None = None
    verified: bool = False


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something, as history keeps it."""

    api_key_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class JobLease:
    """The lease by which a worker acts. `kind`: as stored; `subject`: the conversation."""

    kind: str
    subject: UUID
    lease_hash: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. Without a tenant it is the installation's administrator, or one of
    its workers, which may only lease jobs.

    `publishable`: the key is an end user's browser's and bound to `agent_id`. `end_user`: the
    call is made for them and reaches their conversations only. `job`: a worker makes the call, by
    the lease of a job.
    """

    tenant_id: UUID | None
    scopes: frozenset[Scope] = frozenset()
    api_key_id: UUID | None = None
    publishable: bool = False
    agent_id: UUID | None = None
    end_user: EndUser | None = None
    is_worker: bool = False
    job: JobLease | None = None

    @property
    def is_admin(self) -> bool:
        """Whether this is the installation's administrator."""
        return self.tenant_id is None and not self.is_worker

    @property
    def actor(self) -> Actor:
        """Who this is, as history keeps it."""
        whom = self.end_user or EndUser()
        return Actor(self.api_key_id, whom.user_id, whom.session_id)


_current: ContextVar[Principal] = ContextVar("annals_principal")


def current_principal() -> Principal:
    """Return who makes the running call. Raises LookupError outside an authenticated call."""
    return _current.get()


def set_current_principal(principal: Principal) -> None:
    """Remember who makes the running call, for the rest of it."""
    _current.set(principal)
