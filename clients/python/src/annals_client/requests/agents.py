"""Agents. With `tenant_id` the admin key is used, else the tenant's own."""

from __future__ import annotations

from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call, single_call, tenant_credential
from annals_client.values import enum_number


def create(
    display_name: str,
    *,
    agent_id: str = "",
    system_prompt: str = "",
    model: str = "",
    temperature: float | None = None,
    tools_json: str = "",
    output_schema_json: str = "",
    end_user_mode: int | str = 0,
    context_injection: res.ContextInjection | None = None,
    provider_logs_enabled: bool = False,
    index_config: res.IndexConfig | None = None,
    tenant_id: str = "",
    timeout: float | None = None,
) -> Call[res.Agent]:
    """Create an agent. Repeated by itself only when `agent_id` makes that safe.

    `end_user_mode`: anonymous, trusted (the default) or signed.
    """
    agent = res.Agent(
        agent_id=agent_id,
        display_name=display_name,
        system_prompt=system_prompt,
        model=model,
        temperature=temperature,
        tools_json=tools_json,
        output_schema_json=output_schema_json,
        end_user_mode=_mode(end_user_mode),
        context_injection=context_injection,
        provider_logs_enabled=provider_logs_enabled,
        index_config=index_config,
    )
    request = pb.CreateAgentRequest(tenant_id=tenant_id, agent=agent)
    build = safe_call if agent_id else single_call
    call = build(lambda stubs: stubs.tenants.CreateAgent, request, timeout)
    return call.map(lambda answer: answer.agent).by(tenant_credential(tenant_id))


def update(
    agent_id: str,
    *,
    display_name: str | None = None,
    system_prompt: str | None = None,
    model: str | None = None,
    temperature: float | None = None,
    tools_json: str | None = None,
    output_schema_json: str | None = None,
    end_user_mode: int | str | None = None,
    context_injection: res.ContextInjection | None = None,
    provider_logs_enabled: bool | None = None,
    index_config: res.IndexConfig | None = None,
    tenant_id: str = "",
    timeout: float | None = None,
) -> Call[res.Agent]:
    """Change what is given; None leaves a field alone, "" clears it. Not repeated by itself.

    `index_config` replaces the whole of the former one.
    """
    changes: dict[str, Any] = {
        "display_name": display_name,
        "system_prompt": system_prompt,
        "model": model,
        "temperature": temperature,
        "tools_json": tools_json,
        "output_schema_json": output_schema_json,
        "end_user_mode": None if end_user_mode is None else _mode(end_user_mode),
        "context_injection": context_injection,
        "provider_logs_enabled": provider_logs_enabled,
        "index_config": index_config,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    request = pb.UpdateAgentRequest(
        tenant_id=tenant_id,
        agent=res.Agent(agent_id=agent_id, **given),
        update_mask=FieldMask(paths=list(given)),
    )
    call = single_call(lambda stubs: stubs.tenants.UpdateAgent, request, timeout)
    return call.map(lambda answer: answer.agent).by(tenant_credential(tenant_id))


def get(agent_id: str, *, tenant_id: str = "", timeout: float | None = None) -> Call[res.Agent]:
    """Read one agent."""
    request = pb.GetAgentRequest(tenant_id=tenant_id, agent_id=agent_id)
    call = safe_call(lambda stubs: stubs.tenants.GetAgent, request, timeout)
    return call.map(lambda answer: answer.agent).by(tenant_credential(tenant_id))


def list_all(
    *,
    tenant_id: str = "",
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[res.Agent]:
    """All agents of a tenant, oldest first."""
    request = pb.ListAgentsRequest(tenant_id=tenant_id, page_size=page_size)
    call = safe_call(lambda stubs: stubs.tenants.ListAgents, request, timeout)
    return Pages(call.by(tenant_credential(tenant_id)), lambda answer: answer.agents, limit)


def _mode(mode: int | str) -> Any:
    return enum_number(res.EndUserMode, "END_USER_MODE_", mode)
