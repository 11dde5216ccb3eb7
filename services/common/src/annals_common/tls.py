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
