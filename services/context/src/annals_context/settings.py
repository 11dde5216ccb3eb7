"""Settings of the context service, from the environment: ANNALS_CONTEXT_…"""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from annals_common.keys import key_from
from annals_common.settings import ServerSettings
from annals_common.tls import ClientTlsSettings


class WorkerSettings(BaseModel):
    """How `annals-context work` works."""

    key: SecretStr = Field(
        SecretStr(""), description="worker key; `annals-storage jobs key` makes one"
    )
    name: str = Field("", description="tells people who has a lease; empty: the host name")
    concurrency: int = Field(2, ge=1, le=100, description="jobs at a time")


class CacheSettings(BaseModel):
    """What is kept of assembled contexts."""

    process_bytes: int = Field(
        67_108_864, ge=0, description="of a process; 0: no contexts are kept anywhere"
    )
    ttl_seconds: float = Field(
        900.0, gt=0, le=86_400, description="how long a process keeps a context"
    )
    shared: bool = Field(
        default=True, description="share contexts with other processes, in storage"
    )


class SummarySettings(BaseModel):
    """How summaries age: what is how many events before the newest one."""

    detailed_events: int = Field(128, ge=0, description="up to here summaries are detailed")
    standard_events: int = Field(1_024, ge=0, description="up to here standard, then brief")
    merged_events: int = Field(
        512, ge=1, description="from here on summaries are merged, from 8 times as many once more"
    )


class TopicSettings(BaseModel):
    """How events are clustered into topics, by workers."""

    threshold: float = Field(0.5, ge=0, le=1, description="mean cosine within a topic")
    min_events: int = Field(4, ge=2, description="fewer make no topic")


class ContextSettings(BaseSettings):
    """All settings; nested ones are joined by two underscores, as in SERVER__ADDRESS."""

    model_config = SettingsConfigDict(
        env_prefix="ANNALS_CONTEXT_",
        env_nested_delimiter="__",
        extra="forbid",
        nested_model_default_partial_update=True,
    )

    server: ServerSettings = ServerSettings(address="127.0.0.1:50052")
    storage_address: str = Field("127.0.0.1:50051", description="host:port of storage")
    storage_tls: ClientTlsSettings = ClientTlsSettings()
    worker: WorkerSettings = WorkerSettings()
    cache: CacheSettings = CacheSettings()
    summaries: SummarySettings = SummarySettings()
    topics: TopicSettings = TopicSettings()
    view_key: SecretStr = Field(
        SecretStr(""),
        description="seals views, the same for all processes: 32 bytes in base64url; empty: none",
    )
    view_lifetime_seconds: int = Field(
        86_400, ge=60, le=31_536_000, description="how long a view can be gone on from"
    )

    @field_validator("view_key")
    @classmethod
    def _check_view_key(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value():
            key_from(value.get_secret_value())
        return value

    @property
    def view_key_bytes(self) -> bytes | None:
        """The key as bytes, or None when there is none."""
        encoded = self.view_key.get_secret_value()
        return key_from(encoded) if encoded else None
