"""TenantService: agents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from annals.storage.v1 import resources_pb2 as resources
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.ids import uuid7
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.settings import MEBIBYTE
from annals_common.templates import TemplateError, parse_template
from annals_common.validation import (
    bounded,
    enum,
    json_text,
    optional_uuid,
    page_size,
    require_text,
    require_uuid,
    text,
)
from annals_storage.commands.tenancy import UpdateAgent
from annals_storage.domain.tenancy import Agent, AgentChange
from annals_storage.handlers.access import administered_tenant, readable_tenant
from annals_storage.handlers.enums import END_USER_MODES
from annals_storage.handlers.index_config import read_index_config
from annals_storage.handlers.output import agent_message
from annals_storage.ports.tenancy import TenantStore

MAX_NAME_CHARS = 200
MAX_PROMPT_CHARS = 100_000
MAX_TEMPLATE_CHARS = 10_000
MAX_TEMPERATURE = 2.0


class AgentHandler:
    """Translates; the use cases are in commands.tenancy."""

    def __init__(self, tenants: TenantStore, update: UpdateAgent) -> None:
        self._tenants, self._update = tenants, update

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

    async def UpdateAgent(
        self, request: pb.UpdateAgentRequest, context: Any
    ) -> pb.UpdateAgentResponse:
        tenant_id = administered_tenant("UpdateAgent", request.tenant_id)
        agent_id = require_uuid(request.agent.agent_id, "agent.agent_id")
        values = {path: _reader(path)(request.agent) for path in _paths(request)}
        agent = await self._update(tenant_id, AgentChange(agent_id, values))
        return pb.UpdateAgentResponse(agent=agent_message(agent))


def _agent(agent: resources.Agent) -> Agent:
    agent_id = optional_uuid(agent.agent_id, "agent.agent_id") or uuid7()
    return Agent(agent_id=agent_id, **{name: read(agent) for name, read in _READERS.items()})


def _paths(request: pb.UpdateAgentRequest) -> list[str]:
    paths = sorted(set(request.update_mask.paths))
    if not paths:
        raise FieldInvalidError("update_mask", f"is required: any of {', '.join(_READERS)}")
    return paths


def _reader(path: str) -> Callable[[resources.Agent], Any]:
    if path not in _READERS:
        raise FieldInvalidError("update_mask", f"may name {', '.join(_READERS)}", path)
    return _READERS[path]


def _display_name(agent: resources.Agent) -> str:
    return require_text(agent.display_name, "agent.display_name", max_chars=MAX_NAME_CHARS)


def _system_prompt(agent: resources.Agent) -> str:
    return text(agent.system_prompt, "agent.system_prompt", max_chars=MAX_PROMPT_CHARS)


def _model(agent: resources.Agent) -> str:
    return text(agent.model, "agent.model", max_chars=MAX_NAME_CHARS)


def _temperature(agent: resources.Agent) -> float | None:
    if not agent.HasField("temperature"):
        return None
    bounded(agent.temperature, "agent.temperature", low=0, high=MAX_TEMPERATURE)
    return agent.temperature


def _tools(agent: resources.Agent) -> str:
    return _optional_json(agent.tools_json, "agent.tools_json", list)


def _output_schema(agent: resources.Agent) -> str:
    return _optional_json(agent.output_schema_json, "agent.output_schema_json", dict)


def _optional_json(value: str, field: str, kind: type[list[Any] | dict[str, Any]]) -> str:
    return json_text(value, field, max_bytes=MEBIBYTE, kind=kind) if value else ""


def _end_user_mode(agent: resources.Agent) -> str:
    return enum(agent.end_user_mode, END_USER_MODES, "agent.end_user_mode")


def _context_injection(agent: resources.Agent) -> dict[str, Any]:
    given = agent.context_injection
    path = "agent.context_injection.template"
    try:
        parse_template(text(given.template, path, max_chars=MAX_TEMPLATE_CHARS))
    except TemplateError as error:
        raise FieldInvalidError(path, str(error)) from error
    return {field.name: value for field, value in given.ListFields()}


def _provider_logs_enabled(agent: resources.Agent) -> bool:
    return agent.provider_logs_enabled


_READERS: dict[str, Callable[[resources.Agent], Any]] = {
    "display_name": _display_name,
    "system_prompt": _system_prompt,
    "model": _model,
    "temperature": _temperature,
    "tools_json": _tools,
    "output_schema_json": _output_schema,
    "end_user_mode": _end_user_mode,
    "context_injection": _context_injection,
    "provider_logs_enabled": _provider_logs_enabled,
    "index_config": read_index_config,
}
"""Fields a caller may write, with their readers."""


def _created(moment: datetime | None) -> datetime:
    if moment is None:
        raise ValueError("a stored agent has a creation time")
    return moment
