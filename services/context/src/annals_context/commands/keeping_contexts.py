"""Keeps assembled contexts behind the answers, where nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import structlog

from annals_common.errors import AnnalsError
from annals_context.commands.cache_metrics import PUTS
from annals_context.commands.cache_options import Asked, CacheOptions
from annals_context.commands.preparing import Prepared
from annals_context.ports import Caller, ContextToKeep, SharedContexts

KEEP_SECONDS = 5.0
MAX_WAITING = 64
log = structlog.get_logger()


class PreparedBodies(Protocol):
    """Contexts as bytes and back."""

    def pack(self, value: Prepared) -> bytes:
        """Return it as bytes."""

    def unpack(self, body: bytes) -> Prepared | None:
        """Return what was packed, or None when the bytes are none of it."""


class KeepContexts:
    """Has storage confirm that nothing changed while a context was assembled, and keep it.

    `on_current` is then told: the context may be kept in this process as well.
    """

    def __init__(
        self, shared: SharedContexts, bodies: PreparedBodies, options: CacheOptions
    ) -> None:
        self._shared, self._bodies, self._options = shared, bodies, options
        self._waiting: set[asyncio.Task[None]] = set()

    def __call__(
        self, asked: Asked, state: bytes, prepared: Prepared, on_current: Callable[[], None]
    ) -> None:
        """Return at once. What is crowded out is assembled anew when it is asked for again."""
        if prepared.degraded:
            PUTS.labels("degraded").inc()
        elif not state:
            PUTS.labels("unsettled").inc()
        elif len(self._waiting) >= MAX_WAITING:
            PUTS.labels("crowded").inc()
        else:
            task = asyncio.create_task(self._keep(asked, state, prepared, on_current))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def close(self) -> None:
        """Wait for what is still to be kept."""
        if self._waiting:
            await asyncio.wait(self._waiting)

    async def _keep(
        self, asked: Asked, state: bytes, prepared: Prepared, on_current: Callable[[], None]
    ) -> None:
        shared = self._options.shared
        body = await asyncio.to_thread(self._bodies.pack, prepared) if shared else b""
        context = ContextToKeep(
            asked.request.conversation_id,
            asked.digest,
            state,
            prepared.context.context_version,
            body,
        )
        try:
            is_current, is_kept = await self._shared.keep(_patient(asked.caller), context)
        except AnnalsError as error:
            PUTS.labels("failed").inc()
            log.warning("context not kept", cause=error.message)
            return
        if is_current:
            on_current()
        PUTS.labels(_outcome(is_current, is_kept or not shared)).inc()


def _patient(caller: Caller) -> Caller:
    """The caller has its answer: its deadline is no longer what counts."""
    return replace(caller, timeout_s=KEEP_SECONDS)


def _outcome(is_current: bool, is_kept: bool) -> str:  # noqa: FBT001 - two facts
    if not is_current:
        return "changed"
    return "kept" if is_kept else "too_large"
