"""Contexts that were assembled before: by this process, or by one of the others.

Storage is asked on every request. It decides whether the caller may read the conversation, and
names the state that contexts of it depend on; what was assembled in another state is not returned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from annals_common.errors import AnnalsError
from annals_context.commands.bounded import Bounded
from annals_context.commands.cache_metrics import ANSWERS, LOOKUP_FAILURES
from annals_context.commands.cache_options import Asked, CacheOptions, asked
from annals_context.commands.former_contexts import PAYLOADS_SHARE, CountIn, FormerContexts
from annals_context.commands.keeping_contexts import KeepContexts, PreparedBodies
from annals_context.commands.preparing import Prepare, Prepared
from annals_context.domain.reuse import Reuse, Tier
from annals_context.ports import CachedAnswer, Caller, SharedContexts

LOOKUP_SECONDS = 1.0
LOOKUP_SHARE = 0.1
"""Of the time left, how much a lookup may use: it must not cost the answer itself."""
BYTES_PER_ITEM = 500
"""What an item takes in memory beside the payload (490, by tracemalloc)."""
BYTES_BESIDE_ITEMS = 2_500
log = structlog.get_logger()

Inner = Callable[[Caller, Prepare], Awaitable[Prepared]]


@dataclass(frozen=True, slots=True)
class Served:
    """A context and how much of it was there before."""

    prepared: Prepared
    reuse: Reuse


class CachedContexts:
    """Wraps the use case that assembles."""

    def __init__(
        self,
        prepare: Inner,
        shared: SharedContexts,
        bodies: PreparedBodies,
        count: CountIn,
        options: CacheOptions,
    ) -> None:
        self._prepare, self._shared, self._bodies = prepare, shared, bodies
        self._options = options
        self._keep = KeepContexts(shared, bodies, options)
        self._former = FormerContexts(count, options)
        self._contexts: Bounded[tuple[bytes, bytes], tuple[bytes, Prepared]] = Bounded(
            "contexts",
            max_bytes=int(options.process_bytes * (1 - PAYLOADS_SHARE)),
            ttl_seconds=options.ttl_seconds,
        )

    async def __call__(
        self, caller: Caller, request: Prepare, previous_version: str = ""
    ) -> Served:
        """Return a context, compared with `previous_version` or else with the last of its kind.

        Raises what assembling raises.
        """
        if not self._options.process_bytes:
            return Served(await self._prepare(caller, request), Reuse())
        wanted = asked(caller, request, previous_version, self._options.code_version)
        prepared, tier, before = await self._found_or_made(wanted)
        ANSWERS.labels(tier.value).inc()
        return Served(prepared, await self._former.compare(wanted, prepared, tier, before))

    async def close(self) -> None:
        """Wait for what is still to be kept."""
        await self._keep.close()

    async def _found_or_made(self, wanted: Asked) -> tuple[Prepared, Tier, Prepared | None]:
        held_state, held = self._contexts.get(wanted.key) or (b"", None)
        answer = await self._look_up(wanted, held_state)
        before = self._bodies.unpack(answer.previous_body) if answer.previous_body else None
        if held is not None and answer.state == held_state:
            return held, Tier.PROCESS, before
        found = self._bodies.unpack(answer.body) if answer.body and self._options.shared else None
        if found is not None:
            self._hold(wanted, answer.state, found)
            return found, Tier.SHARED, before
        made = await self._prepare(wanted.caller, wanted.request)
        self._keep(wanted, answer.state, made, lambda: self._hold(wanted, answer.state, made))
        return made, Tier.NONE, before

    async def _look_up(self, wanted: Asked, held_state: bytes) -> CachedAnswer:
        """Ask storage. When it does not answer, assembling tells why, or does without."""
        try:
            return await self._shared.find(
                _impatient(wanted.caller),
                wanted.request.conversation_id,
                wanted.digest,
                held_state=held_state,
                previous_version=self._former.missing_version(wanted),
            )
        except AnnalsError as error:
            LOOKUP_FAILURES.inc()
            log.debug("no cached context", cause=error.message)
            return CachedAnswer(b"")

    def _hold(self, wanted: Asked, state: bytes, prepared: Prepared) -> None:
        context = prepared.context
        size_bytes = len(context.payload.encode()) + BYTES_PER_ITEM * len(context.items)
        self._contexts.put(wanted.key, (state, prepared), size_bytes + BYTES_BESIDE_ITEMS)


def _impatient(caller: Caller) -> Caller:
    if caller.timeout_s is None:
        return replace(caller, timeout_s=LOOKUP_SECONDS)
    return replace(caller, timeout_s=min(LOOKUP_SECONDS, caller.timeout_s * LOOKUP_SHARE))
