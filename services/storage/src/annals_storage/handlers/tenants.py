"""TenantService: the caller and the tenants themselves."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import tenant_service_pb2 as pb
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.principal import EndUser, current_principal
from annals_common.validation import page_size, require_text, require_uuid
from annals_storage.commands.tenancy import CreateTenant
from annals_storage.handlers.access import require_installation_admin
from annals_storage.handlers.enums import KIND_NUMBERS, SCOPE_NUMBERS
from annals_storage.handlers.output import api_key_message, tenant_message
from annals_storage.ports.tenancy import TenantStore

MAX_NAME_CHARS = 200


class TenantHandler:
    """Translates; the use cases are in commands.tenancy."""

    def __init__(self, tenants: TenantStore) -> None:
        self._tenants, self._create = tenants, CreateTenant(tenants)

    async def GetCaller(self, request: pb.GetCallerRequest, context: Any) -> pb.GetCallerResponse:
        principal = current_principal()
        end_user = principal.end_user or EndUser()
        return pb.GetCallerResponse(
            tenant_id=str(principal.tenant_id or ""),
            api_key_id=str(principal.api_key_id or ""),
            scopes=sorted(SCOPE_NUMBERS[scope] for scope in principal.scopes),
            kind=KIND_NUMBERS[principal.publishable],
            agent_id=str(principal.agent_id or ""),
            user_id=end_user.user_id or "",
            session_id=end_user.session_id or "",
            user_verified=end_user.verified,
        )

    async def CreateTenant(
        self, request: pb.CreateTenantRequest, context: Any
    ) -> pb.CreateTenantResponse:
        require_installation_admin("CreateTenant")
        name = require_text(request.display_name, "display_name", max_chars=MAX_NAME_CHARS)
        tenant, key, secret = await self._create(name)
        return pb.CreateTenantResponse(
            tenant=tenant_message(tenant), api_key=api_key_message(key), api_key_secret=secret
        )

    async def GetTenant(self, request: pb.GetTenantRequest, context: Any) -> pb.GetTenantResponse:
        require_installation_admin("GetTenant")
        tenant = await self._tenants.get(require_uuid(request.tenant_id, "tenant_id"))
        return pb.GetTenantResponse(tenant=tenant_message(tenant))

    async def ListTenants(
        self, request: pb.ListTenantsRequest, context: Any
    ) -> pb.ListTenantsResponse:
        require_installation_admin("ListTenants")
        limit = page_size(request.page_size)
        cursor = decode_time_cursor(decode_page_token(request, None, parts=2))
        found = await self._tenants.page(cursor=cursor, limit=limit + 1)
        page, has_more = cut_page(found, limit)
        response = pb.ListTenantsResponse(tenants=[tenant_message(item) for item in page])
        if has_more:
            last = encode_time_cursor(page[-1].created_at, page[-1].tenant_id)
            response.next_page_token = encode_page_token(request, None, last)
        return response
