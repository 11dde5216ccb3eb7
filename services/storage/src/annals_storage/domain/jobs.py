"""Background work: jobs, their leases, and what a worker may do by one."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

TOKEN_PREFIX = "annals_job_"  # noqa: S105 - not a secret
_SECRET_BYTES = 32
_UUID_BYTES = 16
_TOKEN_BYTES = 2 * _UUID_BYTES + _SECRET_BYTES


class JobKind(StrEnum):
    """What there is to do for a conversation, as stored."""

    TOPICS = "topics"
    SUMMARIES = "summaries"


OF_EVERY_JOB = frozenset(
    (
        *("HeartbeatJob", "CompleteJob", "FailJob", "ReleaseJob"),
        *("GetConversation", "GetAgent", "GetEvent", "BatchGetEvents", "ListEvents"),
    )
)
"""Methods that a worker calls whatever its job is: to keep the lease, and to read."""
OF_KIND: dict[str, frozenset[str]] = {
    JobKind.TOPICS: frozenset(("GetClustering", "ListChunkEmbeddings", "ApplyTopics")),
    JobKind.SUMMARIES: frozenset(("GetSummarySource", "ListSummaries", "PutSummaries")),
}
"""Methods by the kind of job they belong to."""


def is_allowed(kind: str, method: str) -> bool:
    """Whether the token of a job of this kind is good for a method."""
    return method in OF_EVERY_JOB or method in OF_KIND.get(kind, frozenset())


@dataclass(frozen=True, slots=True)
class LeasedJob:
    """A job in the hands of one worker. `attempts` counts the leases since it last succeeded."""

    tenant_id: UUID
    subject: UUID
    kind: JobKind
    generation: int
    attempts: int
    leased_until: datetime
    secret: bytes = field(repr=False)

    @property
    def token(self) -> str:
        """The credential that stands for this lease."""
        raw = self.tenant_id.bytes + self.subject.bytes + self.secret
        return TOKEN_PREFIX + _encoded(raw)


@dataclass(frozen=True, slots=True)
class JobClaim:
    """What a token says of itself; whether it is true is to be looked up."""

    tenant_id: UUID
    subject: UUID
    lease_hash: bytes


@dataclass(frozen=True, slots=True)
class JobTotals:
    """What waits of one kind. `lag_seconds`: age of the oldest that is pending."""

    kind: JobKind
    pending: int
    parked: int
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class ParkedJob:
    """A job that failed too often. `error`: of the last attempt, without content."""

    kind: JobKind
    subject: UUID
    attempts: int
    error: str
    parked_at: datetime


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_token(token: str) -> JobClaim | None:
    """Return what a token claims, or None when it is no token of a job."""
    if not token.startswith(TOKEN_PREFIX):
        return None
    encoded = token[len(TOKEN_PREFIX) :]
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    # Of the last character some bits mean nothing: one lease has one token.
    if len(raw) != _TOKEN_BYTES or encoded != _encoded(raw):
        return None
    return JobClaim(
        tenant_id=UUID(bytes=raw[:_UUID_BYTES]),
        subject=UUID(bytes=raw[_UUID_BYTES : 2 * _UUID_BYTES]),
        lease_hash=hashlib.sha256(raw[2 * _UUID_BYTES :]).digest(),
    )
