"""Tenants. All of it needs the installation's admin key."""

from __future__ import annotations

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_client.calls import Call, Credential, Pages, safe_call, single_call


def create(display_name: str, *, timeout: float | None = None) -> Call[pb.CreateTenantResponse]:
    """Create a tenant. The answer is the only place where its first key's secret appears.

    Not repeated by itself: a lost answer may have created the tenant.
    """
    request = pb.CreateTenantRequest(display_name=display_name)
    call = single_call(lambda stubs: stubs.tenants.CreateTenant, request, timeout)
    return call.by(Credential.ADMIN_KEY)


def get(tenant_id: str, *, timeout: float | None = None) -> Call[res.Tenant]:
    """Read one tenant."""
    request = pb.GetTenantRequest(tenant_id=tenant_id)
    call = safe_call(lambda stubs: stubs.tenants.GetTenant, request, timeout)
    return call.map(lambda answer: answer.tenant).by(Credential.ADMIN_KEY)


def list_all(
    *, page_size: int = 0, limit: int | None = None, timeout: float | None = None
) -> Pages[res.Tenant]:
    """All tenants, oldest first. `limit`: at most so many; `timeout`: seconds per page."""
    request = pb.ListTenantsRequest(page_size=page_size)
    call = safe_call(lambda stubs: stubs.tenants.ListTenants, request, timeout)
    return Pages(call.by(Credential.ADMIN_KEY), lambda answer: answer.tenants, limit)
