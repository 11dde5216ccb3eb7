"""Settings of the context service, from the environment: ANNALS_CONTEXT_…"""

from __future__ import annotations

from pydantic import BaseModel, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from annals_common.settings import ServerSettings
from annals_common.tls import ClientTlsSettings


class SummarySettings(BaseModel):
    """How summaries age: what is how many events before the newest one."""

    detailed_events: int = Field(128, ge=0, description="up to here summaries are detailed")
    standard_events: int = Field(1_024, ge=0, description="up to here standard, then brief")
    merged_events: int = Field(
        512, ge=1, description="from here on summaries are merged, from 8 times as many once more"
    )


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
    summaries: SummarySettings = SummarySettings()
