"""The default model, written once per test session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.embedding.minilm import MODEL_NAME, ensure_minilm


@pytest.fixture(scope="session")
def minilm_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure_minilm(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def minilm(minilm_dir: Path) -> Iterator[FastembedEmbedder]:
    embedder = FastembedEmbedder(MODEL_NAME, model_dir=minilm_dir, threads=2)
    yield embedder
    embedder.close()
