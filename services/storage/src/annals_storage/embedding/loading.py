"""From settings to a model that is ready and proven."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from annals_storage.embedding.fastembed_model import DEFAULT_BATCH_SIZE, FastembedEmbedder
from annals_storage.embedding.golden import verify_golden
from annals_storage.embedding.minilm import MODEL_NAME, ensure_minilm


async def load_embedder(
    model_name: str = MODEL_NAME,
    *,
    data_dir: Path,
    threads: int,
    model_dir: Path | None = None,
    batch_size: int = DEFAULT_BATCH_SIZE,
) -> FastembedEmbedder:
    """Load a model off the event loop; the default one is written and verified first.

    `model_dir` names the files of another model, see `FastembedEmbedder`. Raises
    `ModelUnavailableError`, `GoldenMismatchError` and what `FastembedEmbedder` raises.
    """
    if model_name != MODEL_NAME or model_dir is not None:
        return await _open(model_name, model_dir, threads, batch_size)
    written = await asyncio.to_thread(ensure_minilm, data_dir)
    embedder = await _open(model_name, written, threads, batch_size)
    await _verify(embedder)
    return embedder


async def _open(
    model_name: str, model_dir: Path | None, threads: int, batch_size: int
) -> FastembedEmbedder:
    load = partial(
        FastembedEmbedder, model_name, model_dir=model_dir, threads=threads, batch_size=batch_size
    )
    return await asyncio.to_thread(load)


async def _verify(embedder: FastembedEmbedder) -> None:
    try:
        await verify_golden(embedder)
    except BaseException:
        embedder.close()
        raise
