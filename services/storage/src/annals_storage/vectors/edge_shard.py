"""The shard on disk: its layout, opening it, and optimising it offline."""

from __future__ import annotations

from pathlib import Path

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    KeywordIndexParams,
    Modifier,
    PayloadSchemaType,
    UpdateOperation,
    VectorStorageDatatype,
)

from annals_storage.domain.generations import FIRST
from annals_storage.domain.search import Signal
from annals_storage.vectors import payload

NO_GRAPH = HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000)
"""Optimising builds no graph: exact search is as fast here and misses nothing (ADR 0004)."""

FOLDER = "vectors"
"""Where the first generation lies in the data directory; others beside it, with their number."""

LOCK_HELD = "WouldBlock"
"""How the engine's message names a write-ahead log that another process has locked."""


class ShardError(RuntimeError):
    """A shard that cannot be opened. The message says what to do."""


class ShardLockedError(ShardError):
    """Another process has the shard open."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the vector shard {path} is open in another process; stop that process first, "
            "or give this one its own data directory"
        )


class ShardUnusableError(ShardError):
    """The shard is damaged, or was made for other vectors."""

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(
            f"the vector shard {path} cannot be used ({cause}); it is a mirror of PostgreSQL: "
            "remove this directory, start storage and run `annals-storage reindex`"
        )


def open_shard(path: Path, *, dimensions: int) -> EdgeShard:
    """Create or load the shard and make sure its payload indexes exist.

    Raises ShardLockedError or ShardUnusableError.
    """
    try:
        shard = _create_or_load(path, shard_config(dimensions))
        _index_payload(shard)
    except Exception as error:
        raise _opening_error(path, error) from error
    return shard


def shard_config(dimensions: int) -> EdgeConfig:
    """Return the configuration of a shard: float16 vectors, searched exactly (ADR 0004)."""
    dense = EdgeVectorParams(
        size=dimensions, distance=Distance.Cosine, datatype=VectorStorageDatatype.Float16
    )
    return EdgeConfig(
        vectors={Signal.DENSE: dense},
        sparse_vectors={Signal.BM25: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        hnsw_config=NO_GRAPH,
    )


def shard_folder(data_dir: Path, generation: int) -> Path:
    """Return where the shard of a generation of the mirror lies."""
    return data_dir / (FOLDER if generation == FIRST else f"{FOLDER}-{generation}")


def shard_folders(data_dir: Path) -> list[Path]:
    """Return where shards lie, of whatever generation."""
    return sorted(path for path in data_dir.glob(f"{FOLDER}*") if path.is_dir())


def optimize_offline(path: Path, dimensions: int | None = None) -> bool:
    """Compact the shard: drop deleted points, merge segments. True if anything changed.

    The engine holds the interpreter for the whole run (8 s at 100,000 points), and the shard
    must be closed everywhere else: give it a process of its own. Without `dimensions`, the shard's
    own. Raises ShardLockedError or ShardUnusableError.
    """
    shard = open_shard(path, dimensions=dimensions) if dimensions else _load_shard(path)
    try:
        changed = shard.optimize()
        shard.flush()
    finally:
        shard.close()
    return changed


def _load_shard(path: Path) -> EdgeShard:
    try:
        return EdgeShard.load(str(path))
    except Exception as error:
        raise _opening_error(path, error) from error


def _create_or_load(path: Path, config: EdgeConfig) -> EdgeShard:
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        return EdgeShard.load(str(path), config)
    return EdgeShard.create(str(path), config)


def _index_payload(shard: EdgeShard) -> None:
    present = shard.info().payload_schema
    for name, schema in _payload_schema().items():
        if name not in present:
            shard.update(UpdateOperation.create_field_index(name, schema))


def _payload_schema() -> dict[str, KeywordIndexParams | PayloadSchemaType]:
    return {
        payload.TENANT_ID: KeywordIndexParams(is_tenant=True),
        **dict.fromkeys(payload.KEYWORD_FIELDS, PayloadSchemaType.Keyword),
        **dict.fromkeys(payload.INTEGER_FIELDS, PayloadSchemaType.Integer),
    }


def _opening_error(path: Path, error: Exception) -> ShardError:
    if LOCK_HELD in str(error):
        return ShardLockedError(path)
    return ShardUnusableError(path, str(error))
