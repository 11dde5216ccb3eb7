"""The model computes what the reference computed, and a changed model is found out."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.embedding.golden import (
    GOLDEN_FILE,
    GoldenMismatchError,
    read_golden,
    verify_golden,
)
from annals_storage.embedding.minilm import MODEL_NAME

SHARED = os.environ.get("ANNALS_TEST_GOLDEN")
FILES = [GOLDEN_FILE, *([Path(SHARED)] if SHARED else [])]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
async def test_the_model_matches_its_reference(minilm, path):
    await verify_golden(minilm, read_golden(path))


async def test_the_reference_holds_one_text_at_a_time(minilm):
    golden = read_golden()
    for text, vector in zip(golden.texts, golden.vectors, strict=True):
        assert float((await minilm.embed([text]))[0] @ vector) >= 0.9999


def test_the_reference_has_eight_texts_one_of_them_longer_than_the_window(minilm):
    golden = read_golden()
    lengths = [len(minilm.token_spans(text)) for text in golden.texts]
    assert golden.vectors.shape == (8, 384)
    assert max(lengths) > 256
    assert min(lengths) == 0


def edit_json(path: Path, change: dict) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


def quantise(model_dir: Path) -> None:
    """Round every matrix to int8, one scale each, as naive quantisation does."""
    model = onnx.load(model_dir / "model.onnx")
    for initializer in model.graph.initializer:
        weight = numpy_helper.to_array(initializer)
        if weight.ndim == 2 and weight.dtype == np.float32:
            scale = np.abs(weight).max() / 127
            rounded = (np.round(weight / scale) * scale).astype(np.float32)
            initializer.CopyFrom(numpy_helper.from_array(rounded, initializer.name))
    onnx.save(model, model_dir / "model.onnx")


def ignore_padding(model_dir: Path) -> None:
    """Let padding take part in attention."""
    model = onnx.load(model_dir / "model.onnx")
    for initializer in model.graph.initializer:
        if initializer.name == "lowest":
            initializer.CopyFrom(numpy_helper.from_array(np.float32(0), initializer.name))
    onnx.save(model, model_dir / "model.onnx")


def keep_case(model_dir: Path) -> None:
    path = model_dir / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    edit_json(path, {"normalizer": tokenizer["normalizer"] | {"lowercase": False}})


def shorten_window(model_dir: Path) -> None:
    edit_json(model_dir / "tokenizer_config.json", {"model_max_length": 128})


def widen_window(model_dir: Path) -> None:
    edit_json(model_dir / "tokenizer_config.json", {"model_max_length": 512})


@pytest.mark.parametrize(
    "damage", [quantise, ignore_padding, keep_case, shorten_window, widen_window]
)
async def test_a_changed_model_is_refused(minilm_dir, tmp_path, damage):
    model_dir = shutil.copytree(minilm_dir, tmp_path / "model")
    damage(model_dir)
    embedder = FastembedEmbedder(MODEL_NAME, model_dir=model_dir, threads=2)
    with pytest.raises(GoldenMismatchError, match="cosine 0"):
        await verify_golden(embedder)
    embedder.close()


async def test_other_pooling_is_refused(minilm, minilm_dir):
    class FirstTokenEmbedder(FastembedEmbedder):
        def _run(self, batch):
            context = self._text_embedding.model.onnx_embed(batch)
            first = context.model_output[:, 0]
            unit = first / np.linalg.norm(first, axis=1, keepdims=True)
            return [(vector, vector[None]) for vector in unit]

    embedder = FirstTokenEmbedder(MODEL_NAME, model_dir=minilm_dir, threads=2)
    with pytest.raises(GoldenMismatchError, match="cosine"):
        await verify_golden(embedder)
    embedder.close()


async def test_a_model_of_other_dimensions_is_refused(minilm):
    golden = read_golden()
    narrow = type(golden)(golden.model, golden.texts, golden.vectors[:, :100])
    with pytest.raises(GoldenMismatchError, match="384 dimensions"):
        await verify_golden(minilm, narrow)


async def test_no_number_is_refused(minilm):
    golden = read_golden()
    broken = type(golden)(golden.model, golden.texts, np.full_like(golden.vectors, np.nan))
    with pytest.raises(GoldenMismatchError, match="nan"):
        await verify_golden(minilm, broken)
