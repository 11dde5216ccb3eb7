"""Embeddings by fastembed, off the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.common.onnx_model import OnnxOutputContext
from numpy.typing import NDArray
from tokenizers import Tokenizer

from annals_storage.domain.late_interaction import TokenVectors
from annals_storage.embedding.spans import token_spans
from annals_storage.embedding.telling_tokens import TellingTokens

DEFAULT_BATCH_SIZE = 16
"""Texts per inference. Larger batches are no faster on CPU: 16 texts of 30 tokens already
keep every core busy."""

MAX_BATCH_CHARS = 8_192
"""Padded characters per inference: keeps one batch of long texts to a fraction of a second,
so that a query never waits long for a core."""

MAX_CONCURRENT_BATCHES = 2
"""A query is served beside a running batch; more would only fight over the same cores."""

TOKEN_OUTPUT_DIMENSIONS = 3
"""Of a model that returns (texts, tokens, dimensions)."""

_ONNX_FILES = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
_registration = threading.Lock()


class FastembedEmbedder:
    """A fastembed model that runs in a bounded pool of threads. Implements `Embedder`.

    `model_dir` holds the files of a local model: of the one `model_name` names if fastembed
    knows it, otherwise of any BERT-like model, mean-pooled and normalised. Nothing is then
    fetched. Without it fastembed finds or downloads the model it knows by this name.
    `threads` is the number of cores one inference may use. Loading blocks (about 0.2 s).
    Raises `ValueError` for a name fastembed does not know and `FileNotFoundError` for a
    directory without a model.
    """

    def __init__(
        self,
        model_name: str,
        *,
        model_dir: Path | None,
        threads: int,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        self._name = model_name
        self._batch_size = batch_size
        self._text_embedding = _load(model_name, model_dir, threads)
        tokenizer = cast("Any", self._text_embedding.model).tokenizer
        self._max_tokens = int(tokenizer.truncation["max_length"])
        self._tokenizer = _without_limits(tokenizer)
        self._telling_tokens = TellingTokens(tokenizer)
        self._executor = ThreadPoolExecutor(MAX_CONCURRENT_BATCHES, "embedding")

    @property
    def model(self) -> str:
        """Name under which embeddings are stored."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return int(self._text_embedding.embedding_size)

    @property
    def max_tokens(self) -> int:
        """Tokens one text may have, special tokens included; more are cut off."""
        return self._max_tokens

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return L2-normalised vectors of shape (len(texts), dimensions), in order.

        Texts of similar length share a batch, so that padding costs little. A cancelled call
        stops after the batch that is running.
        """
        vectors, _ = await self.embed_tokens(texts)
        return vectors

    async def embed_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[TokenVectors]]:
        """Return what `embed` returns, and for each text the vectors of its telling tokens.

        Both come out of one pass. A model that keeps its tokens to itself gives none.
        """
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        tokens = [np.empty((0, self.dimensions), np.float32)] * len(texts)
        loop = asyncio.get_running_loop()
        for indices in batches(texts, self._batch_size):
            batch = [texts[index] for index in indices]
            of_batch = await loop.run_in_executor(self._executor, self._run, batch)
            for index, (vector, own) in zip(indices, of_batch, strict=True):
                vectors[index], tokens[index] = vector, own
        return vectors, tokens

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character offsets of the model's tokens, specials left out.

        Blocks about a second per megabyte and releases the GIL meanwhile.
        """
        return token_spans(self._tokenizer, text)

    def close(self) -> None:
        """Wait for running batches and end the threads."""
        self._executor.shutdown()

    def _run(self, batch: list[str]) -> list[tuple[NDArray[np.float32], TokenVectors]]:
        # As TextEmbedding.embed does it, which drops the tokens.
        model = cast("Any", self._text_embedding.model)
        output = model.onnx_embed(batch)
        vectors = model._post_process_onnx_output(output)  # noqa: SLF001 - pinned
        return [(vector, self._tokens(output, row)) for row, vector in enumerate(vectors)]

    def _tokens(self, output: OnnxOutputContext, row: int) -> TokenVectors:
        if output.model_output.ndim != TOKEN_OUTPUT_DIMENSIONS or output.input_ids is None:
            return np.empty((0, self.dimensions), np.float32)
        kept = self._telling_tokens.positions(output.input_ids[row])
        tokens = output.model_output[row, kept].astype(np.float32)
        unit: TokenVectors = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
        return unit


def batches(
    texts: Sequence[str], batch_size: int, *, max_chars: int = MAX_BATCH_CHARS
) -> Iterator[list[int]]:
    """Yield the indices of texts by length, at most `batch_size` and `max_chars` at a time.

    `max_chars` counts padding. A single text may exceed it.
    """
    batch: list[int] = []
    for index in sorted(range(len(texts)), key=lambda index: len(texts[index])):
        padded_chars = (len(batch) + 1) * len(texts[index])
        if batch and (len(batch) == batch_size or padded_chars > max_chars):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _load(model_name: str, model_dir: Path | None, threads: int) -> TextEmbedding:
    # The provider is named because looking for a GPU takes time and may find one.
    load = partial(
        TextEmbedding,
        model_name,
        threads=threads,
        providers=["CPUExecutionProvider"],
        lazy_load=True,
    )
    if model_dir is None:
        return _with_sleeping_threads(load())
    _register(model_name, model_dir)
    # fastembed makes its cache directory even where it needs none: let it be one that exists.
    path = str(model_dir)
    local = load(specific_model_path=path, cache_dir=path, local_files_only=True)
    return _with_sleeping_threads(local)


def _with_sleeping_threads(text_embedding: TextEmbedding) -> TextEmbedding:
    """Load the model. Its threads sleep between inferences.

    By default they look for work for 25 ms after each, on cores that the rest of a search needs.
    """
    model = cast("Any", text_embedding.model)
    model.add_extra_session_options = _without_spinning
    model.load_onnx_model()
    return text_embedding


def _without_spinning(options: Any, _extra: Mapping[str, Any]) -> None:
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")


def _register(model_name: str, model_dir: Path) -> None:
    with _registration:
        known = {entry["model"].lower() for entry in TextEmbedding.list_supported_models()}
        if model_name.lower() in known:
            return
        TextEmbedding.add_custom_model(
            model_name,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(url="file:///"),
            dim=_read_config(model_dir)["hidden_size"],
            model_file=_onnx_file(model_dir),
        )


def _read_config(model_dir: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((model_dir / "config.json").read_bytes())
    return config


def _onnx_file(model_dir: Path) -> str:
    for name in _ONNX_FILES:
        if (model_dir / name).is_file():
            return name
    raise FileNotFoundError(f"{model_dir} has none of {', '.join(_ONNX_FILES)}")


def _without_limits(tokenizer: Tokenizer) -> Tokenizer:
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_padding()
    copy.no_truncation()
    return copy
