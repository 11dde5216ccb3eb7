"""How assembled contexts are kept, and what one request goes by in their cache."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from annals_context.commands.preparing import Prepare
from annals_context.domain.reuse import OF_ONE_TURN, request_digest
from annals_context.ports import Caller


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """`process_bytes`: what a process keeps, 0: no cache at all. `shared`: through storage too."""

    process_bytes: int
    ttl_seconds: float
    shared: bool
    code_version: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A request and its keys. In this process nobody meets what other credentials asked for.

    `kind` is the same for all turns of a conversation that ask for contexts of one kind.
    `previous_version`: the version to compare with; empty: the one of this kind that came last.
    """

    caller: Caller
    request: Prepare
    previous_version: str
    who: bytes
    digest: bytes
    kind: bytes

    @property
    def key(self) -> tuple[bytes, bytes]:
        """What a context is kept under in this process."""
        return self.who, self.digest


def asked(caller: Caller, request: Prepare, previous_version: str, code_version: str) -> Asked:
    """Return a request with its keys."""
    who = repr((caller.authorization, caller.end_user)).encode()
    return Asked(
        caller=caller,
        request=request,
        previous_version=previous_version,
        who=hashlib.sha256(who).digest(),
        digest=request_digest(request, code_version),
        kind=request_digest(request, code_version, without=OF_ONE_TURN),
    )
