"""TenantService."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from annals.storage.v1 import resources_pb2 as resources
from annals.storage.v1 import tenant_service_pb2 as pb
from annals.storage.v1 import tenant_service_pb2_grpc as pb_grpc
from annals_common.errors import FieldInvalidError
from annals_common.ids import uuid7
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.principal import current_principal
from annals_common.settings import MEBIBYTE
from annals_common.validation import (
    bounded,
    enums,
    json_text,
    optional_uuid,
    page_size,
    require_text,
    require_uuid,
    text,
    timestamp,
)
from annals_storage.commands.authentication import utc_now
from annals_storage.commands.tenancy import CreateApiKey, CreateTenant, RevokeApiKey
from annals_storage.domain.tenancy import Agent
from annals_storage.handlers.access import (
    administered_tenant,
    readable_tenant,
    require_installation_admin,
)
from annals_storage.handlers.enums import SCOPE_NUMBERS, SCOPES
from annals_storage.handlers.output import agent_message, api_key_message, tenant_message
from annals_storage.ports import TenantStore

MAX_NAME_CHARS = 200
MAX_PROMPT_CHARS = 100_000
MAX_TEMPERATURE = 2.0


class TenantHandler(pb_grpc.TenantServiceServicer):
    """Translates; the use cases are in commands.tenancy."""

    def __init__(self, tenants: TenantStore, revoke: RevokeApiKey) -> None:
        self._tenants, self._revoke = tenants, revoke
        self._create_tenant, self._create_key = CreateTenant(tenants), CreateApiKey(tenants)

    async def GetCaller(self, request: pb.GetCallerRequest, context: Any) -> pb.GetCallerResponse:
        principal = current_principal()
        return pb.GetCallerResponse(
            tenant_id=str(principal.tenant_id or ""),
            api_key_id=str(principal.api_key_id or ""),
            scopes=sorted(SCOPE_NUMBERS[scope] for scope in principal.scopes),
        )

    async def CreateTenant(
        self, request: pb.CreateTenantRequest, context: Any
    ) -> pb.CreateTenantResponse:
        require_installation_admin("CreateTenant")
        name = require_text(request.display_name, "display_name", max_chars=MAX_NAME_CHARS)
        tenant, key, secret = await self._create_tenant(name)
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

    async def CreateAgent(
        self, request: pb.CreateAgentRequest, context: Any
    ) -> pb.CreateAgentResponse:
        tenant_id = administered_tenant("CreateAgent", request.tenant_id)
        agent = await self._tenants.create_agent(tenant_id, _agent(request.agent))
        return pb.CreateAgentResponse(agent=agent_message(agent))

    async def GetAgent(self, request: pb.GetAgentRequest, context: Any) -> pb.GetAgentResponse:
        tenant_id = readable_tenant("GetAgent", request.tenant_id)
        agent_id = require_uuid(request.agent_id, "agent_id")
        agent = await self._tenants.get_agent(tenant_id, agent_id)
        return pb.GetAgentResponse(agent=agent_message(agent))

    async def ListAgents(
        self, request: pb.ListAgentsRequest, context: Any
    ) -> pb.ListAgentsResponse:
        tenant_id = readable_tenant("ListAgents", request.tenant_id)
        limit = page_size(request.page_size)
        cursor = decode_time_cursor(decode_page_token(request, tenant_id, parts=2))
        found = await self._tenants.page_agents(tenant_id, cursor=cursor, limit=limit + 1)
        page, has_more = cut_page(found, limit)
        response = pb.ListAgentsResponse(agents=[agent_message(item) for item in page])
        if has_more:
            last = encode_time_cursor(_created(page[-1].created_at), page[-1].agent_id)
            response.next_page_token = encode_page_token(request, tenant_id, last)
        return response

    async def CreateApiKey(
        self, request: pb.CreateApiKeyRequest, context: Any
    ) -> pb.CreateApiKeyResponse:
        tenant_id = administered_tenant("CreateApiKey", request.tenant_id)
        if not request.scopes:
            raise FieldInvalidError("scopes", "is required: at least one scope")
        key, secret = await self._create_key(
            tenant_id,
            display_name=text(request.display_name, "display_name", max_chars=MAX_NAME_CHARS),
            scopes=frozenset(enums(request.scopes, SCOPES, "scopes")),
            expires_at=_expiry(request),
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


def _agent(agent: resources.Agent) -> Agent:
    if agent.HasField("temperature"):
        bounded(agent.temperature, "agent.temperature", low=0, high=MAX_TEMPERATURE)
    return Agent(
        agent_id=optional_uuid(agent.agent_id, "agent.agent_id") or uuid7(),
        display_name=require_text(
            agent.display_name, "agent.display_name", max_chars=MAX_NAME_CHARS
        ),
        system_prompt=text(agent.system_prompt, "agent.system_prompt", max_chars=MAX_PROMPT_CHARS),
        model=text(agent.model, "agent.model", max_chars=MAX_NAME_CHARS),
        temperature=agent.temperature if agent.HasField("temperature") else None,
        tools_json=_optional_json(agent.tools_json, "agent.tools_json", list),
        output_schema_json=_optional_json(
            agent.output_schema_json, "agent.output_schema_json", dict
        ),
    )


def _optional_json(value: str, field: str, kind: type[list[Any] | dict[str, Any]]) -> str:
    return json_text(value, field, max_bytes=MEBIBYTE, kind=kind) if value else ""


def _expiry(request: pb.CreateApiKeyRequest) -> datetime | None:
    if not request.HasField("expire_time"):
        return None
    moment = timestamp(request.expire_time, "expire_time")
    if moment <= utc_now():
        raise FieldInvalidError("expire_time", "must be in the future", moment.isoformat())
    return moment


def _created(moment: datetime | None) -> datetime:
    if moment is None:
        raise ValueError("a stored agent has a creation time")
    return moment
