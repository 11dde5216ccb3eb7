"""The metadata by which a call names the end user it is made for."""

from __future__ import annotations

from collections import Counter

from annals_common.errors import FieldInvalidError, UserTokenInvalidError
from annals_common.interceptors.chain import Call
from annals_common.validation import require_text
from annals_storage.commands.end_users import NOBODY, SESSION_KEY, TOKEN_KEY, USER_KEY, EndUserClaim
from annals_storage.domain.user_tokens import MAX_TOKEN_CHARS

MAX_END_USER_CHARS = 256
KEYS = (SESSION_KEY, USER_KEY, TOKEN_KEY)


def claimed_end_user(call: Call) -> EndUserClaim:
    """Return what the call says of its end user.

    Raises FieldInvalidError for a key that is empty, too long or sent twice: a server that
    forwards an empty header must not act for the whole tenant by mistake.
    """
    pairs = [(key, value) for key, value in call.context.invocation_metadata() or () if key in KEYS]
    if not pairs:
        return NOBODY
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise FieldInvalidError(key, "must be sent once")
    sent = {key: str(value) for key, value in pairs}
    return EndUserClaim(
        session_id=_identity(sent, SESSION_KEY),
        user_id=_identity(sent, USER_KEY),
        token=_token(sent),
    )


def _identity(sent: dict[str, str], key: str) -> str | None:
    if key not in sent:
        return None
    return require_text(sent[key], key, max_chars=MAX_END_USER_CHARS)


def _token(sent: dict[str, str]) -> str | None:
    token = sent.get(TOKEN_KEY)
    if token is not None and not 1 <= len(token) <= MAX_TOKEN_CHARS:
        raise UserTokenInvalidError
    return token
