"""What was returned before, to tell how much of a context a provider has read already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from annals_context.commands.bounded import Bounded
from annals_context.commands.cache_metrics import SHARED_PREFIX
from annals_context.commands.cache_options import Asked, CacheOptions
from annals_context.commands.preparing import Prepared
from annals_context.domain.reuse import Reuse, Tier, shared_prefix

PAYLOADS_SHARE = 0.25
VERSIONS_SHARE = 0.02
VERSION_BYTES = 400
"""What one version takes with its key, about."""

CountIn = Callable[[str, str], int]
"""Tokens of a text in an encoding."""


class FormerContexts:
    """Payloads by version, and the newest version of each kind, of this process."""

    def __init__(self, count: CountIn, options: CacheOptions) -> None:
        self._count = count
        self._payloads: Bounded[tuple[bytes, str, str], str] = Bounded(
            "payloads",
            max_bytes=int(options.process_bytes * PAYLOADS_SHARE),
            ttl_seconds=options.ttl_seconds,
        )
        self._newest: Bounded[tuple[bytes, bytes], str] = Bounded(
            "versions",
            max_bytes=int(options.process_bytes * VERSIONS_SHARE),
            ttl_seconds=options.ttl_seconds,
        )

    def missing_version(self, asked: Asked) -> str:
        """Return the version to compare with if this process does not have it, else nothing."""
        return "" if self._payload(asked, asked.previous_version) else asked.previous_version

    async def compare(
        self, asked: Asked, prepared: Prepared, tier: Tier, from_others: Prepared | None
    ) -> Reuse:
        """Compare with the version before, and remember this one for the next time."""
        version = asked.previous_version or self._newest.get((asked.who, asked.kind)) or ""
        before = self._payload(asked, version)
        if before is None and from_others is not None:
            before = from_others.context.payload
        self._remember(asked, prepared)
        if before is None:
            return Reuse(tier)
        return await self._reuse(tier, version, before, prepared)

    async def _reuse(self, tier: Tier, version: str, before: str, prepared: Prepared) -> Reuse:
        context = prepared.context
        if before == context.payload:
            prefix, tokens = before, context.total_tokens
        else:
            prefix = shared_prefix(before, context.payload)
            # Milliseconds of pure CPU for a large one: not on the event loop.
            tokens = await asyncio.to_thread(self._count, context.counter.encoding, prefix)
        prefix_bytes = len(prefix.encode())
        SHARED_PREFIX.observe(prefix_bytes / max(1, len(context.payload.encode())))
        return Reuse(tier, version, prefix_bytes, min(tokens, context.total_tokens))

    def _payload(self, asked: Asked, version: str) -> str | None:
        return self._payloads.get((asked.who, asked.request.conversation_id, version))

    def _remember(self, asked: Asked, prepared: Prepared) -> None:
        version, payload = prepared.context.context_version, prepared.context.payload
        key = (asked.who, asked.request.conversation_id, version)
        self._payloads.put(key, payload, len(payload.encode()) + VERSION_BYTES)
        self._newest.put((asked.who, asked.kind), version, VERSION_BYTES)
