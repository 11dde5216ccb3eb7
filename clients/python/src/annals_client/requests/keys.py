"""API keys. With `tenant_id` the admin key is used, else the tenant's own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call, single_call, tenant_credential
from annals_client.values import enum_number, enum_numbers, timestamp


def create(
    display_name: str = "",
    *,
    scopes: Sequence[int | str] | None = None,
    kind: int | str = "secret",
    agent_id: str = "",
    expire_time: datetime | None = None,
    tenant_id: str = "",
    timeout: float | None = None,
) -> Call[pb.CreateApiKeyResponse]:
    """Create a key. The answer alone shows the secret.

    `kind`: secret, for servers, with `scopes` data (the default) and tenant-admin; or
    publishable, for the browsers of end users, bound to `agent_id` and without scopes.

    Not repeated by itself: a lost answer may have created a key.
    """
    number = enum_number(res.ApiKeyKind, "API_KEY_KIND_", kind)
    if scopes is None:
        scopes = () if number == res.API_KEY_KIND_PUBLISHABLE else ("data",)
    request = pb.CreateApiKeyRequest(
        tenant_id=tenant_id,
        display_name=display_name,
        scopes=enum_numbers(res.ApiKeyScope, "API_KEY_SCOPE_", scopes),
        kind=number,
        agent_id=agent_id,
        expire_time=timestamp(expire_time),
    )
    call = single_call(lambda stubs: stubs.tenants.CreateApiKey, request, timeout)
    return call.by(tenant_credential(tenant_id))


def list_all(
    *,
    tenant_id: str = "",
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[res.ApiKey]:
    """All keys of a tenant, oldest first, without secrets."""
    request = pb.ListApiKeysRequest(tenant_id=tenant_id, page_size=page_size)
    call = safe_call(lambda stubs: stubs.tenants.ListApiKeys, request, timeout)
    return Pages(call.by(tenant_credential(tenant_id)), lambda answer: answer.api_keys, limit)


def revoke(
    api_key_id: str, *, tenant_id: str = "", timeout: float | None = None
) -> Call[res.ApiKey]:
    """Refuse a key from now on; revoking twice is no error."""
    request = pb.RevokeApiKeyRequest(tenant_id=tenant_id, api_key_id=api_key_id)
    call = safe_call(lambda stubs: stubs.tenants.RevokeApiKey, request, timeout)
    return call.map(lambda answer: answer.api_key).by(tenant_credential(tenant_id))


def caller(*, timeout: float | None = None) -> Call[pb.GetCallerResponse]:
    """Tell whose key this client uses, and what it may do."""
    request = pb.GetCallerRequest()
    return safe_call(lambda stubs: stubs.tenants.GetCaller, request, timeout)
