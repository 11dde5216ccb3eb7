"""What both clients share: addresses, keys, deadlines and retries."""

from __future__ import annotations

from typing import Any

import grpc

from annals_client.bulk import BulkAppend, BulkOptions
from annals_client.calls import CONTEXT, STORAGE, Call, Credential
from annals_client.config import ConfigurationError, Endpoints
from annals_client.errors import AnnalsRpcError, Details, UnavailableError, from_rpc
from annals_client.retry import Attempts, RetryPolicy
from annals_client.streams import Download, Upload

Metadata = tuple[tuple[str, str], ...]
AnyCall = Call[Any] | Download | Upload[Any]


class Session:
    """Turns calls into attempts with metadata, and failures into errors."""

    def __init__(self, endpoints: Endpoints, *, timeout_s: float, policy: RetryPolicy) -> None:
        self.endpoints, self.timeout_s, self.policy = endpoints, timeout_s, policy
        self.require(STORAGE)

    def __repr__(self) -> str:
        where = self.endpoints
        return f"storage={where.storage!r}, context={where.context!r}, timeout={self.timeout_s}"

    def require(self, service: str) -> None:
        """Raise ConfigurationError when the address of `service` is not known."""
        known = self.endpoints.context if service == CONTEXT else self.endpoints.storage
        if not known:
            raise ConfigurationError(
                f"no address of {service}: start the services with `make run`, "
                f"or set ANNALS_{service.upper()}_ADDRESS"
            )

    def attempts(self, call: AnyCall) -> Attempts:
        """Begin the attempts of a call; its deadline starts now."""
        self.require(call.service)
        timeout_s = self.timeout_s if call.timeout_s is None else call.timeout_s
        return Attempts(self.policy, timeout_s=timeout_s, safe=call.safe)

    def metadata(self, credential: Credential) -> Metadata:
        """Whose key a call is made with, and for which end user."""
        if credential is Credential.NONE:
            return ()
        bearer = _bearer(self._key(credential))
        if credential is Credential.ADMIN_KEY:
            return bearer
        return (*bearer, *self.endpoints.end_user.metadata())

    def error(self, error: grpc.RpcError, call: AnyCall) -> AnnalsRpcError:
        """Turn the failure of a call into an error of ours."""
        return from_rpc(error, method=call.method, service=call.service)

    def stream_error(self, error: grpc.RpcError) -> AnnalsRpcError:
        """Turn the failure of a bulk append into an error of ours."""
        return from_rpc(error, method="StreamAppendEvents", service=STORAGE)

    def watch_error(self, error: grpc.RpcError) -> AnnalsRpcError:
        """Turn the failure of a watch into an error of ours."""
        return from_rpc(error, method="WatchEvents", service=STORAGE)

    def bulk(self, options: BulkOptions) -> BulkAppend:
        """Begin the state of a bulk append."""
        return BulkAppend(options, self.policy)

    def _key(self, credential: Credential) -> str:
        own, admin = self.endpoints.api_key.value, self.endpoints.admin_key.value
        return admin or own if credential is Credential.ADMIN_KEY else own


def ended_early() -> UnavailableError:
    """The error of a bulk append whose stream ended before everything was acknowledged."""
    return UnavailableError(
        grpc.StatusCode.UNAVAILABLE,
        "the stream ended before every batch was acknowledged",
        Details(),
        method="StreamAppendEvents",
        service=STORAGE,
    )


def _bearer(key: str) -> Metadata:
    return (("authorization", f"Bearer {key}"),) if key else ()
