"""Keys that sign the tokens of end users. With `tenant_id` the admin key is used."""

from __future__ import annotations

from datetime import datetime

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call, single_call, tenant_credential
from annals_client.values import enum_number, timestamp


def create(
    algorithm: int | str,
    *,
    issuer: str,
    audience: str,
    public_key_pem: str = "",
    display_name: str = "",
    expire_time: datetime | None = None,
    tenant_id: str = "",
    timeout: float | None = None,
) -> Call[pb.CreateSigningKeyResponse]:
    """Create a key. `algorithm`: hs256 (the answer alone shows the secret), or rs256, es256,
    eddsa with `public_key_pem`. Not repeated by itself.
    """
    key = res.SigningKey(
        display_name=display_name,
        algorithm=enum_number(res.SigningAlgorithm, "SIGNING_ALGORITHM_", algorithm),
        public_key_pem=public_key_pem,
        issuer=issuer,
        audience=audience,
        expire_time=timestamp(expire_time),
    )
    request = pb.CreateSigningKeyRequest(tenant_id=tenant_id, signing_key=key)
    call = single_call(lambda stubs: stubs.tenants.CreateSigningKey, request, timeout)
    return call.by(tenant_credential(tenant_id))


def list_all(
    *,
    tenant_id: str = "",
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[res.SigningKey]:
    """All signing keys, oldest first, without secrets."""
    request = pb.ListSigningKeysRequest(tenant_id=tenant_id, page_size=page_size)
    call = safe_call(lambda stubs: stubs.tenants.ListSigningKeys, request, timeout)
    return Pages(call.by(tenant_credential(tenant_id)), lambda answer: answer.signing_keys, limit)


def revoke(
    signing_key_id: str, *, tenant_id: str = "", timeout: float | None = None
) -> Call[res.SigningKey]:
    """Refuse tokens of a key from now on; revoking twice is no error."""
    request = pb.RevokeSigningKeyRequest(tenant_id=tenant_id, signing_key_id=signing_key_id)
    call = safe_call(lambda stubs: stubs.tenants.RevokeSigningKey, request, timeout)
    return call.map(lambda answer: answer.signing_key).by(tenant_credential(tenant_id))
