"""Resume tokens: opaque, bound to what is watched and to the tenant; they grant nothing."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from annals_common.errors import FieldInvalidError

_HASH_CHARS = 16
_PARTS = 5
_NUMBER = re.compile(r"[0-9]{1,19}")
MAX_TOKEN_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Watched:
    """What a token belongs to."""

    tenant_id: UUID
    conversation_id: UUID | None
    agent_id: UUID | None
    branch: int | None

    def digest(self) -> str:
        """Return a short hash."""
        parts = (self.tenant_id, self.conversation_id, self.agent_id, self.branch)
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:_HASH_CHARS]


@dataclass(frozen=True, slots=True)
class Token:
    """A database's incarnation, and (xid, conversation, seq) in it."""

    incarnation: str
    cursor: tuple[int, UUID | None, int]


def write_token(cursor: Sequence[str], watched: Watched) -> str:
    """Return the token of a cursor."""
    raw = json.dumps([watched.digest(), *cursor], separators=(",", ":"))
    return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def read_token(token: str, watched: Watched) -> Token | None:
    """Return what the token says, None when it is empty. Raises FieldInvalidError."""
    if not token:
        return None
    try:
        digest, incarnation, xid, conversation_id, seq = _unpack(token)
        cursor = (_number(xid), UUID(conversation_id) if conversation_id else None, _number(seq))
    except ValueError as error:
        raise _refused() from error
    if digest != watched.digest():
        raise _refused()
    return Token(incarnation, cursor)


def _unpack(token: str) -> list[str]:
    if len(token) > MAX_TOKEN_CHARS:
        raise ValueError("too long")
    try:
        padded = token + "=" * (-len(token) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, RecursionError) as error:
        raise ValueError("not one of ours") from error
    if not isinstance(parts, list) or len(parts) != _PARTS:
        raise ValueError("not one of ours")
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("not one of ours")
    return parts


def _number(value: str) -> int:
    if not _NUMBER.fullmatch(value) or (number := int(value)) >= 2**63:
        raise ValueError("not a number")
    return number


def _refused() -> FieldInvalidError:
    return FieldInvalidError("resume_token", "was not made by this watch; watch anew without one")
