"""Jobs as a worker sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from annals_context.ports import Caller

Command = Callable[[Caller, str], Awaitable[None]]
"""Does what a kind of job stands for: with the job's own credentials, for a conversation's id.

It is told nothing of what changed, reads the conversation as it is and may be repeated. What takes
the processor for long belongs into a thread, or the lease is not renewed.
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A leased job. `caller` has its token and acts for its tenant until the lease ends."""

    kind: str
    conversation_id: str
    tenant_id: str
    generation: int
    attempts: int
    caller: Caller


class Jobs(Protocol):
    """Where jobs are leased. Every method raises AnnalsError as storage did."""

    async def lease(self, kinds: Sequence[str], *, limit: int, lease_seconds: int) -> list[Job]:
        """Lease at most `limit` jobs of these kinds."""

    async def heartbeat(self, job: Job, *, lease_seconds: int) -> None:
        """Have the lease last so long from now on."""

    async def complete(self, job: Job) -> None:
        """Say that the job is done, as of its generation."""

    async def fail(self, job: Job, error: str) -> None:
        """Say that it failed, and why, without content: ≤ 500 characters."""

    async def release(self, job: Job) -> None:
        """Give it back as if it had not been leased."""

    async def check(self) -> None:
        """Raise unless storage answers."""
