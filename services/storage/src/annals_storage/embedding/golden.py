"""Proof that a model computes what it is supposed to compute.

`golden.json` holds eight texts and their vectors (float32, little-endian, base64) as the
fp32 model computes them; that model was checked against vectors made with torch. A wrong
pooling, padding, truncation, tokenizer or quantisation moves at least one of them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annals_storage.ports.embedding import Embedder

GOLDEN_FILE = Path(__file__).with_name("golden.json")

MIN_COSINE = 0.9999
"""Rounding stays far above it (measured against torch: 1 within 1e-6); naive int8 far below."""


class GoldenMismatchError(Exception):
    """The model's vectors differ from the reference."""


@dataclass(frozen=True, slots=True)
class Golden:
    """Reference texts of one model; `vectors` has shape (len(texts), dimensions)."""

    model: str
    texts: tuple[str, ...]
    vectors: NDArray[np.float32]


def read_golden(path: Path = GOLDEN_FILE) -> Golden:
    """Read a file `{"model", "items": [{"text", "embedding"}]}`.

    An embedding is a list of numbers or base64 of little-endian float32.
    """
    content: Mapping[str, Any] = json.loads(path.read_bytes())
    items: Sequence[Mapping[str, Any]] = content["items"]
    return Golden(
        model=content["model"],
        texts=tuple(item["text"] for item in items),
        vectors=np.stack([_vector(item["embedding"]) for item in items]),
    )


async def verify_golden(embedder: Embedder, golden: Golden | None = None) -> None:
    """Compute every reference text; about 500 tokens in all, 0.2 to 0.35 s on two busy cores.

    Raises `GoldenMismatchError` when the cosine of any of them is below `MIN_COSINE`.
    """
    reference = golden or read_golden()
    vectors = await embedder.embed(reference.texts)
    if vectors.shape != reference.vectors.shape:
        raise GoldenMismatchError(
            f"{embedder.model} has {vectors.shape[1]} dimensions, "
            f"{reference.model} has {reference.vectors.shape[1]}"
        )
    _require_equal(reference, _cosines(vectors, reference.vectors), embedder.model)


def _require_equal(reference: Golden, cosines: NDArray[np.float32], model: str) -> None:
    worst = int(np.argmin(cosines))
    # Written so that a NaN fails too.
    if not cosines[worst] >= MIN_COSINE:
        raise GoldenMismatchError(
            f"{model} does not compute {reference.model}: cosine {cosines[worst]:.6f} for "
            f"{reference.texts[worst][:40]!r}, at least {MIN_COSINE} is required; "
            "remove the model's directory to have it written again"
        )


def _cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines: NDArray[np.float32] = np.sum(left * right, axis=1) / norms
    return cosines


def _vector(embedding: str | Sequence[float]) -> NDArray[np.float32]:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding), dtype="<f4").astype(np.float32)
    return np.asarray(embedding, dtype=np.float32)
