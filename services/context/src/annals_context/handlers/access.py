"""Whose call it is. Storage decides; the answer is remembered for a few seconds."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import structlog

from annals_common.errors import CredentialsInvalidError, ScopeMissingError
from annals_common.interceptors.chain import Call, Middleware
from annals_context.ports import Caller, Identity, Storage

CACHE_SECONDS = 5.0
CACHE_ENTRIES = 10_000
MAX_CREDENTIAL_CHARS = 4_096
END_USER_KEYS = frozenset(("annals-session-id", "annals-user-id", "annals-user-token"))
"""Forwarded to storage with the credentials: without them a call would reach more."""

_caller: ContextVar[Caller] = ContextVar("annals_caller")
_identity: ContextVar[Identity] = ContextVar("annals_identity")


class KnownCallers:
    """Tenants by the hash of their credentials, with a short memory."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._cache: OrderedDict[bytes, tuple[float, Identity]] = OrderedDict()

    async def identify(self, caller: Caller) -> Identity:
        """Return who it is. Raises CredentialsInvalidError as storage does."""
        key = hashlib.sha256(repr((caller.authorization, caller.end_user)).encode()).digest()
        known = self._cache.get(key)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        identity = await self._storage.identify(caller)
        self._cache[key] = (time.monotonic() + CACHE_SECONDS, identity)
        self._cache.move_to_end(key)
        while len(self._cache) > CACHE_ENTRIES:
            self._cache.popitem(last=False)
        return identity


def authenticated(callers: KnownCallers) -> Middleware:
    """Refuse calls without valid credentials; remember them for the calls to storage."""

    @asynccontextmanager
    async def middleware(call: Call) -> AsyncIterator[None]:
        authorization = call.metadata.get("authorization", "")
        if not authorization or len(authorization) > MAX_CREDENTIAL_CHARS:
            raise CredentialsInvalidError
        caller = Caller(
            authorization,
            call.request_id,
            call.context.time_remaining(),
            _end_user(call.context.invocation_metadata() or ()),
        )
        identity = await callers.identify(caller)
        structlog.contextvars.bind_contextvars(tenant_id=identity.tenant_id or "admin")
        _caller.set(caller)
        _identity.set(identity)
        yield

    return middleware


def refuse_publishable(method: str) -> None:
    """Raises ScopeMissingError for a publishable key."""
    if _identity.get().is_publishable:
        raise ScopeMissingError(method, "a secret key")


def current_identity() -> Identity:
    """Return whose the running call is."""
    return _identity.get()


def _end_user(metadata: Iterable[tuple[str, str | bytes]]) -> tuple[tuple[str, str], ...]:
    """Return what names the end user, twice what was sent twice: storage judges it."""
    return tuple((key, str(value)) for key, value in metadata if key in END_USER_KEYS)


def current_caller(context: Any) -> Caller:
    """Return who makes the running call, with what is left of its deadline."""
    known = _caller.get()
    return replace(known, timeout_s=context.time_remaining())
