"""CPU time of the indexer's stages, on whichever thread they run."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import psutil

from annals_storage.embedding.bm25 import Bm25Encoder
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.indexer import embeddings
from annals_storage.indexer.mirror import Mirror
from annals_storage.vectors.edge import EdgeVectorIndex

_WATCHED: tuple[tuple[str, Any, str], ...] = (
    ("tokenise", FastembedEmbedder, "token_spans"),
    ("cut", Mirror, "_cut"),
    ("pack_signs", embeddings, "pack_signs"),
    ("bm25", Bm25Encoder, "encode_document"),
    ("engine", EdgeVectorIndex, "_upsert"),
)
_INSIDE = {"cut": "tokenise"}
"""Stages that contain another one, which is taken off."""


class StageClock:
    """Adds up the CPU seconds threads spend in the stages, and those of the whole process.

    What is left over is the model with its own threads, and the event loop.
    """

    def __init__(self) -> None:
        self._seconds = dict.fromkeys((stage for stage, _, _ in _WATCHED), 0.0)
        self._process_s = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count inside the block."""
        before_s = _process_seconds()
        with ExitStack() as patches:
            for stage, owner, name in _WATCHED:
                timed = self._timed(stage, getattr(owner, name))
                patches.enter_context(patch.object(owner, name, timed))
            yield
        self._process_s += _process_seconds() - before_s

    def cpu_seconds(self) -> dict[str, float]:
        """Return the seconds by stage."""
        left_s = self._process_s - sum(self._seconds.values())
        own = dict(self._seconds)
        for outer, inner in _INSIDE.items():
            own[outer] -= own[inner]
            left_s += own[inner]
        return {**own, "model_and_event_loop": left_s}

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                self._seconds[stage] += time.thread_time() - begun

        return timed


def _process_seconds() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)
