"""TLS for servers."""

from __future__ import annotations

from pathlib import Path

import grpc
from pydantic import BaseModel, model_validator


class TlsSettings(BaseModel):
    """PEM files. With `client_ca_file`, clients must present a certificate (mTLS)."""

    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None

    @model_validator(mode="after")
    def _check(self) -> TlsSettings:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together")
        if self.client_ca_file and not self.cert_file:
            raise ValueError("client_ca_file needs cert_file and key_file")
        return self

    def server_credentials(self) -> grpc.ServerCredentials | None:
        """Return credentials for a server port, or None to serve in clear."""
        if self.cert_file is None or self.key_file is None:
            return None
        client_ca = self.client_ca_file.read_bytes() if self.client_ca_file else None
        return grpc.ssl_server_credentials(
            [(self.key_file.read_bytes(), self.cert_file.read_bytes())],
            root_certificates=client_ca,
            require_client_auth=client_ca is not None,
        )


class ClientTlsSettings(BaseModel):
    """PEM files for calls to another service. `ca_file` alone: TLS; all three: mTLS."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @model_validator(mode="after")
    def _check(self) -> ClientTlsSettings:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together")
        if self.cert_file and not self.ca_file:
            raise ValueError("cert_file needs ca_file")
        return self

    def channel_credentials(self) -> grpc.ChannelCredentials | None:
        """Return credentials for a channel, or None to call in clear."""
        if self.ca_file is None:
            return None
        return grpc.ssl_channel_credentials(
            self.ca_file.read_bytes(),
            self.key_file.read_bytes() if self.key_file else None,
            self.cert_file.read_bytes() if self.cert_file else None,
        )
