"""User tokens: JWTs (RFC 7519) of a narrow form.

What a general library lets pass is refused here: members that occur twice, headers that change
how a token is read, numbers that are text, base64 that is not canonical.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from annals_storage.domain.signing import SigningKey

MAX_TOKEN_CHARS = 4_096
MAX_SUBJECT_CHARS = 256
LEEWAY_S = 30
"""How far the clocks of tenant and server may lie apart."""
MAX_LIFETIME_S = 24 * 3_600
_PART = re.compile(r"[A-Za-z0-9_-]+")
_HEADERS = frozenset(("alg", "kid", "typ"))


@dataclass(frozen=True, slots=True)
class UnverifiedToken:
    """A token that is well formed, of whoever may have made it."""

    key_id: UUID
    algorithm: str
    claims: dict[str, Any]


def parse_token(token: str) -> UnverifiedToken:
    """Take a token apart without believing any of it. Raises ValueError."""
    if len(token) > MAX_TOKEN_CHARS:
        raise ValueError("too long")
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("not a signed token")
    header, claims, _ = _object(parts[0]), _object(parts[1]), _bytes(parts[2])
    if not header.keys() <= _HEADERS:
        raise ValueError("unknown header")
    if str(header.get("typ", "JWT")).upper() != "JWT":
        raise ValueError("another type")
    return UnverifiedToken(_key_id(header), _text(header, "alg"), claims)


def subject_of(claims: dict[str, Any], key: SigningKey, *, now_s: float) -> str:
    """Return whom the claims name. Raises ValueError unless they hold now and for this key."""
    if _text(claims, "iss") != key.issuer:
        raise ValueError("another issuer")
    if key.audience not in _audiences(claims.get("aud")):
        raise ValueError("another audience")
    _check_times(claims, now_s)
    subject = _text(claims, "sub")
    if not 1 <= len(subject) <= MAX_SUBJECT_CHARS or "\x00" in subject:
        raise ValueError("subject out of range")
    # Raises UnicodeEncodeError, a ValueError, for half of a surrogate pair.
    subject.encode()
    return subject


def _check_times(claims: dict[str, Any], now_s: float) -> None:
    expiry_s = _seconds(claims, "exp")
    begins_s = [_seconds(claims, name) for name in ("nbf", "iat") if name in claims]
    if expiry_s <= now_s - LEEWAY_S:
        raise ValueError("expired")
    if any(begin_s > now_s + LEEWAY_S for begin_s in begins_s):
        raise ValueError("not valid yet")
    issued_s = _seconds(claims, "iat") if "iat" in claims else now_s + LEEWAY_S
    if expiry_s > min(issued_s, now_s + LEEWAY_S) + MAX_LIFETIME_S:
        raise ValueError("valid for too long")


def _seconds(claims: dict[str, Any], name: str) -> int:
    value = claims.get(name)
    # bool is an int to Python.
    if type(value) is not int:
        raise ValueError(f"{name} is not a whole number")
    return value


def _text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")  # noqa: TRY004 - one kind of error
    return value


def _audiences(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _key_id(header: dict[str, Any]) -> UUID:
    key_id = _text(header, "kid")
    key = UUID(key_id)
    if str(key) != key_id:
        raise ValueError("kid is not a UUID as we write it")
    return key


def _object(part: str) -> dict[str, Any]:
    try:
        value = json.loads(_bytes(part).decode(), object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 - one kind of error
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member occurs twice")
    return members


def _bytes(part: str) -> bytes:
    if not _PART.fullmatch(part):
        raise ValueError("not base64url")
    try:
        raw = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("not base64url") from error
    # Two texts must not stand for the same bytes.
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != part:
        raise ValueError("not canonical base64url")
    return raw
