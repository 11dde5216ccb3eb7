"""TenantService: API keys."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals.storage.v1 import tenant_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.principal import Scope
from annals_common.validation import enum, enums, page_size, require_uuid, text
from annals_storage.commands.tenancy import CreateApiKey, RevokeApiKey
from annals_storage.handlers.access import administered_tenant
from annals_storage.handlers.enums import PUBLISHABLE, SCOPES
from annals_storage.handlers.expiry import future_time
from annals_storage.handlers.output import api_key_message
from annals_storage.ports.tenancy import TenantStore

MAX_NAME_CHARS = 200


class ApiKeyHandler:
    """Translates; the use cases are in commands.tenancy."""

    def __init__(self, tenants: TenantStore, revoke: RevokeApiKey) -> None:
        self._tenants, self._revoke = tenants, revoke
        self._create = CreateApiKey(tenants)

    async def CreateApiKey(
        self, request: pb.CreateApiKeyRequest, context: Any
    ) -> pb.CreateApiKeyResponse:
        tenant_id = administered_tenant("CreateApiKey", request.tenant_id)
        agent_id, scopes = _reach(request)
        expires_at = request.expire_time if request.HasField("expire_time") else None
        key, secret = await self._create(
            tenant_id,
            display_name=text(request.display_name, "display_name", max_chars=MAX_NAME_CHARS),
            scopes=scopes,
            expires_at=future_time(expires_at, "expire_time"),
            agent_id=agent_id,
        )
        return pb.CreateApiKeyResponse(api_key=api_key_message(key), api_key_secret=secret)

    async def ListApiKeys(
        self, request: pb.ListApiKeysRequest, context: Any
    ) -> pb.ListApiKeysResponse:
        tenant_id = administered_tenant("ListApiKeys", request.tenant_id)
        limit = page_size(request.page_size)
        cursor = decode_time_cursor(decode_page_token(request, tenant_id, parts=2))
        found = await self._tenants.page_keys(tenant_id, cursor=cursor, limit=limit + 1)
        page, has_more = cut_page(found, limit)
        response = pb.ListApiKeysResponse(api_keys=[api_key_message(item) for item in page])
        if has_more:
            last = encode_time_cursor(page[-1].created_at, page[-1].api_key_id)
            response.next_page_token = encode_page_token(request, tenant_id, last)
        return response

    async def RevokeApiKey(
        self, request: pb.RevokeApiKeyRequest, context: Any
    ) -> pb.RevokeApiKeyResponse:
        tenant_id = administered_tenant("RevokeApiKey", request.tenant_id)
        key = await self._revoke(tenant_id, require_uuid(request.api_key_id, "api_key_id"))
        return pb.RevokeApiKeyResponse(api_key=api_key_message(key))


def _reach(request: pb.CreateApiKeyRequest) -> tuple[UUID | None, frozenset[Scope]]:
    """Return the agent of a publishable key, the scopes of a secret one."""
    if enum(request.kind, PUBLISHABLE, "kind"):
        if request.scopes:
            raise FieldInvalidError("scopes", "must be empty for a publishable key")
        return require_uuid(request.agent_id, "agent_id"), frozenset()
    if request.agent_id:
        raise FieldInvalidError("agent_id", "is only for publishable keys", request.agent_id)
    if not request.scopes:
        raise FieldInvalidError("scopes", "is required: at least one scope")
    return None, frozenset(enums(request.scopes, SCOPES, "scopes"))
