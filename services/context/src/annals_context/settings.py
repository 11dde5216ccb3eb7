"""Settings of the context service, from the environment: ANNALS_CONTEXT_…"""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from annals_common.settings import ServerSettings
from annals_common.tls import ClientTlsSettings


class WorkerSettings(BaseModel):
    """How `annals-context work` works."""

    key: SecretStr = Field(
        SecretStr(""), description="worker key; `annals-storage jobs key` makes one"
    )
    name: str = Field("", description="tells people who has a lease; empty: the host name")
    concurrency: int = Field(2, ge=1, le=100, description="jobs at a time")


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
    topics: TopicSettings = TopicSettings()
