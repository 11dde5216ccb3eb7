"""What an erasure is, what it counts and how its receipt proves itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

COPIES_IN_FORKS = "copies_in_forks"
"""Counted, not erased: forks are conversations of their own."""
ERASED_KINDS = (
    "agents",
    "api_keys",
    "append_requests",
    "attachments",
    "branches",
    "chunks",
    "cold_objects",
    "cold_segments",
    "conversations",
    "events",
    "fork_requests",
    "memories",
    "observation_payloads",
    "observations",
    "provider_logs",
    "relationships",
    "retention_policies",
    "search_log",
    "search_parameters",
    "session_merges",
    "signing_keys",
    "tenants",
    "usage",
    "vectors",
)
"""What every receipt counts."""
LATER_KINDS = ("cached_contexts", "summaries", "summary_runs", "topics")
"""Counted since the first receipts were written, whose digests must go on to match: counted where
the erasure looked for them.
"""
VERIFIED_KINDS = (*ERASED_KINDS, *LATER_KINDS)
"""Everything an erasure takes away and a verification looks for."""
RECEIPT_KINDS = (*ERASED_KINDS, COPIES_IN_FORKS)

Counts = Mapping[str, int]


class ErasureScope(StrEnum):
    """What was erased, as stored."""

    EVENT = "event"
    CONVERSATION = "conversation"
    USER = "user"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of an erasure. Without `completed_at` it was interrupted."""

    receipt_id: UUID
    scope: ErasureScope
    subject: str
    started_at: datetime
    counts: Counts = field(default_factory=dict)
    completed_at: datetime | None = None
    digest: str = ""

    def full_counts(self) -> dict[str, int]:
        """Return the count of every kind the erasure looked for, zeros too, by name."""
        kinds = {*RECEIPT_KINDS, *(kind for kind in LATER_KINDS if kind in self.counts)}
        return {kind: int(self.counts.get(kind, 0)) for kind in sorted(kinds)}

    def completed(self, at: datetime) -> Receipt:
        """Return it with its end and the digest over everything."""
        done = replace(self, completed_at=at)
        return replace(done, digest=done.compute_digest())

    def compute_digest(self) -> str:
        """Return the SHA-256 of the fields as canonical JSON, in hexadecimal digits."""
        fields = {
            "receipt_id": str(self.receipt_id),
            "scope": self.scope.value,
            "subject": self.subject,
            "counts": self.full_counts(),
            "start_time": _moment(self.started_at),
            "complete_time": _moment(self.completed_at),
        }
        return hashlib.sha256(canonical_json(fields).encode()).hexdigest()

    @property
    def digest_matches(self) -> bool:
        """Whether the receipt is as it was completed."""
        return bool(self.digest) and self.digest == self.compute_digest()


def canonical_json(value: object) -> str:
    """Return JSON with sorted keys, no spaces and ASCII only: one text for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def user_subject(tenant_id: UUID, user_id: str) -> str:
    """Return what a receipt calls a user: SHA-256 of `<tenant_id>:<user_id>` in hex digits."""
    return hashlib.sha256(f"{tenant_id}:{user_id}".encode()).hexdigest()


def summed(*parts: Counts) -> dict[str, int]:
    """Return the sums by kind."""
    kinds = {kind for part in parts for kind in part}
    return {kind: sum(part.get(kind, 0) for part in parts) for kind in kinds}


def _moment(moment: datetime | None) -> str:
    if moment is None:
        return ""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
