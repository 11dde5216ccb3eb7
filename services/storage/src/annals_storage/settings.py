"""Settings of the storage service, from the environment: ANNALS_STORAGE_…"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from annals_common.keys import key_from
from annals_common.settings import ServerSettings
from annals_storage.domain.context_cache import CacheLimits
from annals_storage.embedding.bm25 import AUTO, fallback_language
from annals_storage.embedding.minilm import MODEL_NAME

_SHA256_HEX = re.compile(r"[0-9a-f]{64}")


class StorageSettings(BaseSettings):
    """All settings; nested ones are joined by two underscores, as in SERVER__ADDRESS."""

    model_config = SettingsConfigDict(
        env_prefix="ANNALS_STORAGE_",
        env_nested_delimiter="__",
        extra="forbid",
        nested_model_default_partial_update=True,
    )

    server: ServerSettings = ServerSettings(address="127.0.0.1:50051")
    database_url: SecretStr = Field(
        SecretStr(""),
        validate_default=True,
        description="libpq URL or conninfo of the role annals_app",
    )
    database_max_connections: int = Field(10, ge=1, le=1000, description="size of the pool")
    statement_timeout_ms: int = Field(30_000, ge=100, description="longest statement")
    admin_key_sha256: str = Field("", description="hex SHA-256 of the installation's admin key")
    worker_key_sha256: str = Field(
        "", description="hex SHA-256 of the key that background workers lease jobs by"
    )
    secrets_key: SecretStr = Field(
        SecretStr(""), description="32 bytes in base64url; encrypts what tenants' tokens rest on"
    )
    data_dir: Path = Field(Path("build/data"), description="model files and the embedded engine")
    embedding_model: str = Field(
        MODEL_NAME,
        description="any model fastembed knows, for a new installation; see `rebuild --model`",
    )
    embedding_model_dir: Path | None = Field(
        None, description="files of embedding_model, instead of the hub"
    )
    embedding_threads: int = Field(2, ge=1, description="CPU threads of the model")
    bm25_language: str = Field(
        AUTO, description="of texts whose language cannot be told; auto: english"
    )
    vector_engine: Literal["edge", "server"] = Field(
        "edge", description="edge: embedded, one process; server: a Qdrant server"
    )
    qdrant_url: str = Field("", description="with vector_engine=server")
    qdrant_api_key: SecretStr = Field(SecretStr(""), description="of the Qdrant server")
    qdrant_collection: str = Field("annals", description="name of the alias")
    mirror_grace_seconds: float = Field(
        60.0, ge=0, description="how long a generation of the mirror that another replaced is kept"
    )
    engine_timeout_ms: int = Field(
        2_000, ge=50, description="how long a search waits for the engine before it does without"
    )
    large_conversation_events: int = Field(
        10_000, ge=1, description="events from which a conversation is called large"
    )
    max_watches: int = Field(500, ge=1, description="more are refused: OVERLOADED")
    watch_poll_seconds: float = Field(
        5.0, gt=0, description="how long a watch waits at most when no notification comes"
    )
    cold_storage_url: str = Field(
        "", description="fsspec URL below which old words go: file:///…, s3://bucket/…; empty: none"
    )
    cold_storage_options: SecretStr = Field(
        SecretStr("{}"), description="JSON object: what fsspec needs besides, as keys and endpoint"
    )
    context_cache_ttl_seconds: float = Field(
        3_600.0, gt=0, le=2_592_000, description="how long an assembled context is kept"
    )
    context_cache_body_bytes: int = Field(
        262_144, ge=0, le=4_194_304, description="largest context kept, compressed; 0: none is"
    )
    context_cache_tenant_bytes: int = Field(
        67_108_864, ge=0, description="of one tenant, compressed; the oldest go first"
    )
    run_indexer: bool = Field(default=True, description="index in this process too")
    index_max_chunks_per_event: int = Field(
        512, ge=1, le=10_000, description="chunks embedded of one event; later words are left out"
    )
    indexer_name: str = Field("", description="tells indexers' leases apart; empty: the host name")

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value():
            raise ValueError("is required: postgresql://annals_app:…@host/database")
        return value

    @field_validator("admin_key_sha256", "worker_key_sha256")
    @classmethod
    def _check_hash(cls, value: str) -> str:
        if value and not _SHA256_HEX.fullmatch(value):
            raise ValueError("must be 64 lower-case hexadecimal digits")
        return value

    @field_validator("secrets_key")
    @classmethod
    def _check_secrets_key(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value():
            key_from(value.get_secret_value())
        return value

    @field_validator("bm25_language")
    @classmethod
    def _check_language(cls, value: str) -> str:
        fallback_language(value)
        return value

    @field_validator("cold_storage_options")
    @classmethod
    def _check_cold_storage_options(cls, value: SecretStr) -> SecretStr:
        try:
            parsed = json.loads(value.get_secret_value())
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            # The value itself is not shown: it may hold keys.
            raise ValueError("must be a JSON object")  # noqa: TRY004 - what pydantic reports
        return value

    @model_validator(mode="after")
    def _check_engine(self) -> StorageSettings:
        if self.vector_engine == "server" and not self.qdrant_url:
            raise ValueError("qdrant_url is required with vector_engine=server")
        if self.vector_engine == "edge" and not self.run_indexer:
            raise ValueError("vector_engine=edge serves one process: run_indexer must be true")
        return self

    @property
    def context_cache_limits(self) -> CacheLimits:
        """How much of assembled contexts is kept."""
        return CacheLimits(
            self.context_cache_ttl_seconds,
            self.context_cache_body_bytes,
            self.context_cache_tenant_bytes,
        )

    @property
    def cold_storage_arguments(self) -> dict[str, Any]:
        """The options of cold storage as arguments of the file system."""
        return dict(json.loads(self.cold_storage_options.get_secret_value()))

    @property
    def secrets_key_bytes(self) -> bytes | None:
        """The key as bytes, or None when there is none."""
        encoded = self.secrets_key.get_secret_value()
        return key_from(encoded) if encoded else None

    @property
    def worker_key_hash(self) -> bytes | None:
        """The hash as bytes, or None when there is no worker key."""
        return bytes.fromhex(self.worker_key_sha256) if self.worker_key_sha256 else None

    @property
    def admin_key_hash(self) -> bytes | None:
        """The hash as bytes, or None when there is no admin key."""
        return bytes.fromhex(self.admin_key_sha256) if self.admin_key_sha256 else None
