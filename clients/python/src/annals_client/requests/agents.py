"""Agents. With `tenant_id` the admin key is used, else the tenant's own."""

from __future__ import annotations

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call, single_call, tenant_credential


def create(
    display_name: str,
    *,
    agent_id: str = "",
    system_prompt: str = "",
    model: str = "",
    temperature: float | None = None,
    tools_json: str = "",
    output_schema_json: str = "",
    tenant_id: str = "",
    timeout: float | None = None,
) -> Call[res.Agent]:
    """Create an agent. Repeated by itself only when `agent_id` makes that safe."""
    agent = res.Agent(
        agent_id=agent_id,
        display_name=display_name,
        system_prompt=system_prompt,
        model=model,
        temperature=temperature,
        tools_json=tools_json,
        output_schema_json=output_schema_json,
    )
    request = pb.CreateAgentRequest(tenant_id=tenant_id, agent=agent)
    build = safe_call if agent_id else single_call
    call = build(lambda stubs: stubs.tenants.CreateAgent, request, timeout)
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
