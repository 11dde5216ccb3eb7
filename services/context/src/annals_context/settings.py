"""Settings of the context service, from the environment: ANNALS_CONTEXT_…"""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from annals_common.keys import key_from
from annals_common.settings import ServerSettings
from annals_common.tls import ClientTlsSettings


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
