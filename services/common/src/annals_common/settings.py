"""Settings every service has. All mistakes are reported at once, at start."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings

from annals_common.logs import LogLevel
from annals_common.tls import TlsSettings

MEBIBYTE = 1024 * 1024
MAX_RECEIVE_BYTES = 64 * MEBIBYTE
"""What gRPC itself accepts. Above our own limits, so that ours answer, with a reason."""
MAX_REQUEST_BYTES = 16 * MEBIBYTE
MAX_RESPONSE_BYTES = 48 * MEBIBYTE

SettingsT = TypeVar("SettingsT", bound=BaseSettings)


class ServerSettings(BaseModel):
    """How a gRPC server listens and drains."""

    address: str = Field("127.0.0.1:0", description="host:port of the gRPC server; port 0: any")
    metrics_address: str = Field("", description="host:port of /metrics; empty: none")
    health_address: str = Field(
        "", description="host:port of health alone, in clear, for probes; empty: none"
    )
    reflection: bool = Field(default=False, description="serve gRPC reflection")
    log_level: LogLevel = Field("info", description="debug, info, warning or error")
    drain_seconds: float = Field(20.0, ge=0, description="how long calls may finish after SIGTERM")
    max_concurrent_calls: int = Field(1000, ge=1, description="more are refused: OVERLOADED")
    max_connection_age_seconds: int = Field(0, ge=0, description="0: connections live forever")
    tls: TlsSettings = TlsSettings()


def load_settings(kind: type[SettingsT]) -> SettingsT:
    """Read settings from the environment, or exit with every mistake listed."""
    try:
        return kind()
    except ValidationError as error:
        prefix = str(kind.model_config.get("env_prefix", "")).upper()
        for item in error.errors():
            name = prefix + "__".join(str(part) for part in item["loc"]).upper()
            sys.stderr.write(f"{name}: {item['msg']}\n")
        sys.exit(2)


def describe_settings(kind: type[BaseSettings]) -> list[tuple[str, str, str]]:
    """Return (variable, default, meaning) of every setting, nested ones included."""
    defaults = {name: field.default for name, field in kind.model_fields.items()}
    return _described(kind, defaults, str(kind.model_config.get("env_prefix", "")).upper())


def _described(
    kind: type[BaseModel], defaults: Mapping[str, object], prefix: str
) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for name, field in kind.model_fields.items():
        variable, default = prefix + name.upper(), defaults[name]
        if isinstance(default, BaseModel):
            rows += _described(type(default), dict(default), f"{variable}__")
        else:
            rows.append((variable, _shown(default), field.description or ""))
    return rows


def _shown(default: object) -> str:
    return "" if default is None or isinstance(default, SecretStr) else str(default)
