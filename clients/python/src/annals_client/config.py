"""Where the services are and which keys to send."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from annals_client.errors import AnnalsClientError

DEFAULT_TIMEOUT_S = 10.0
ENDPOINTS_PATH = Path("build/local/endpoints.json")


class ConfigurationError(AnnalsClientError):
    """An address is missing, or a file of addresses is unreadable."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A key that never shows in `repr`, logs or errors."""

    value: str

    def __post_init__(self) -> None:
        # A key file ends with a line feed; anything else that no header can carry is a mistake.
        object.__setattr__(self, "value", self.value.strip())
        if not (self.value.isascii() and self.value.isprintable()):
            raise ConfigurationError("the key holds characters that no key has; copy it again")

    def __repr__(self) -> str:
        return "Secret(set)" if self.value else "Secret(empty)"


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files. Without `ca_path`: gRPC's own roots. Certificate and key: mTLS."""

    ca_path: Path | None = None
    certificate_path: Path | None = None
    key_path: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Read the files. Raises OSError when one is unreadable."""
        return grpc.ssl_channel_credentials(
            _read(self.ca_path), _read(self.key_path), _read(self.certificate_path)
        )


@dataclass(frozen=True, slots=True)
class EndUser:
    """Whom calls with a tenant's key are made for: a session, a user id, or a signed token."""

    session_id: str = ""
    user_id: str = ""
    token: Secret = Secret("")

    def __post_init__(self) -> None:
        for name, value in (("session_id", self.session_id), ("user_id", self.user_id)):
            if not (value.isascii() and value.isprintable()):
                raise ConfigurationError(
                    f"{name}: metadata carries printable ASCII only; sign a token that names it"
                )

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return what is set, as metadata of a call."""
        pairs = (
            ("annals-session-id", self.session_id),
            ("annals-user-id", self.user_id),
            ("annals-user-token", self.token.value),
        )
        return tuple((name, value) for name, value in pairs if value)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses (`host:port` or a gRPC target) and keys. Either key may be empty."""

    storage: str = ""
    context: str = ""
    api_key: Secret = Secret("")
    admin_key: Secret = Secret("")
    tls: Tls | None = None
    end_user: EndUser = EndUser()

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Return what a channel needs for TLS, or None to call in clear."""
        return self.tls.credentials() if self.tls else None

    def over(self, base: Endpoints) -> Endpoints:
        """What is set here, else what is set in `base`."""
        return Endpoints(
            storage=self.storage or base.storage,
            context=self.context or base.context,
            api_key=self.api_key if self.api_key.value else base.api_key,
            admin_key=self.admin_key if self.admin_key.value else base.admin_key,
            tls=self.tls or base.tls,
            end_user=self.end_user if self.end_user.metadata() else base.end_user,
        )


def from_environment(
    environ: Mapping[str, str] = os.environ, *, directory: Path | None = None
) -> Endpoints:
    """Read `ANNALS_*`; what they leave open comes from the nearest endpoints file.

    The file is the one named by `ANNALS_ENDPOINTS`, else `build/local/endpoints.json` in
    `directory` (default: the working directory) or the nearest directory above it.
    """
    given = _from_variables(environ)
    path = environ.get("ANNALS_ENDPOINTS")
    found = Path(path) if path else _nearest(directory or Path.cwd())
    return given.over(read_endpoints(found)) if found else given


def read_endpoints(path: Path) -> Endpoints:
    """Read a file that the embedded default wrote. Raises ConfigurationError."""
    fields = _fields(path)
    return Endpoints(
        storage=str(fields.get("storage", "")),
        context=str(fields.get("context", "")),
        api_key=Secret(str(fields.get("api_key", ""))),
        admin_key=Secret(str(fields.get("admin_key", ""))),
    )


def _fields(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}; is it the right file?") from None
    except ValueError:
        raise ConfigurationError(f"{path}: is not JSON; start the services again") from None
    if not isinstance(fields, dict):
        raise ConfigurationError(f"{path}: is not a JSON object; start the services again")
    return fields


def _from_variables(environ: Mapping[str, str]) -> Endpoints:
    return Endpoints(
        storage=environ.get("ANNALS_STORAGE_ADDRESS", ""),
        context=environ.get("ANNALS_CONTEXT_ADDRESS", ""),
        api_key=Secret(environ.get("ANNALS_API_KEY", "")),
        admin_key=Secret(environ.get("ANNALS_ADMIN_KEY", "")),
        tls=_tls(environ),
        end_user=EndUser(
            environ.get("ANNALS_SESSION_ID", ""),
            environ.get("ANNALS_USER_ID", ""),
            Secret(environ.get("ANNALS_USER_TOKEN", "")),
        ),
    )


def _tls(environ: Mapping[str, str]) -> Tls | None:
    names = ("ANNALS_TLS_CA", "ANNALS_TLS_CERT", "ANNALS_TLS_KEY")
    paths = [Path(environ[name]) if environ.get(name) else None for name in names]
    return Tls(*paths) if any(paths) else None


def _nearest(directory: Path) -> Path | None:
    candidates = (parent / ENDPOINTS_PATH for parent in (directory, *directory.parents))
    return next((path for path in candidates if path.is_file()), None)


def _read(path: Path | None) -> bytes | None:
    return path.read_bytes() if path else None
