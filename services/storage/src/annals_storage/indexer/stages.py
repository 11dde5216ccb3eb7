"""How long the indexer spends on what, seen from outside of the parts that do it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar, cast

from annals_storage.indexer.metrics import STAGE_SECONDS

PartT = TypeVar("PartT")
STAGES = {
    "claim": "claim",
    "text_bytes": "read",
    "get_indexable": "read",
    "get_indexable_memories": "read",
    "get_known_chunks": "read",
    "embed_tokens": "embed",
    "save_chunks": "save",
    "save_memory_embeddings": "save",
    "upsert": "mirror",
    "delete_events": "mirror",
    "delete_chunks": "mirror",
    "delete_memories": "mirror",
    "delete_conversation": "mirror",
    "acknowledge": "acknowledge",
}
"""Methods of the outbox, the model and the engine by what the indexer does in them."""


def staged(part: PartT) -> PartT:
    """Return the part with the time spent in its methods added up by stage."""
    return cast("PartT", _Staged(part))


class _Staged:
    def __init__(self, part: object) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        return _timed(method, STAGES[name]) if name in STAGES else method


def _timed(method: Callable[..., Awaitable[Any]], stage: str) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with STAGE_SECONDS.labels(stage).time():
            return await method(*args, **kwargs)

    return call
