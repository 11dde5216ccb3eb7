"""LifecycleService."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals.storage.v1 import lifecycle_service_pb2 as pb
from annals.storage.v1 import lifecycle_service_pb2_grpc as pb_grpc
from annals_common.errors import FieldInvalidError, PageTokenInvalidError, ResourceNotFoundError
from annals_common.paging import cut_page, decode_page_token, encode_page_token
from annals_common.validation import bounded, optional_uuid, page_size, require_uuid
from annals_storage.commands.cold_storage import ColdStorage
from annals_storage.domain.retention import (
    MAX_DAYS,
    MAX_PROVIDER_LOG_DAYS,
    TENANT_POLICY,
    RetentionPolicy,
)
from annals_storage.handlers.access import own_administered_tenant
from annals_storage.handlers.output import timestamp_message
from annals_storage.ports.lifecycle import RetentionStore

MAX_SEQ = 2**63 - 1
DAYS = {
    "archive_after_days": MAX_DAYS,
    "cold_after_days": MAX_DAYS,
    "erase_after_days": MAX_DAYS,
    "erase_deleted_after_days": MAX_DAYS,
    "provider_log_days": MAX_PROVIDER_LOG_DAYS,
    "search_log_days": MAX_DAYS,
}
"""The fields of a policy and the most days each takes."""


class LifecycleHandler(pb_grpc.LifecycleServiceServicer):
    """Translates; policies are kept, words are moved by commands.cold_storage."""

    def __init__(self, policies: RetentionStore, cold: ColdStorage) -> None:
        self._policies, self._cold = policies, cold

    async def SetRetentionPolicy(
        self, request: pb.SetRetentionPolicyRequest, context: Any
    ) -> pb.SetRetentionPolicyResponse:
        tenant_id = own_administered_tenant("SetRetentionPolicy")
        if not request.HasField("policy"):
            raise FieldInvalidError("policy", "is required")
        stored = await self._policies.set(tenant_id, _policy(request.policy))
        return pb.SetRetentionPolicyResponse(policy=policy_message(stored))

    async def GetRetentionPolicy(
        self, request: pb.GetRetentionPolicyRequest, context: Any
    ) -> pb.GetRetentionPolicyResponse:
        tenant_id = own_administered_tenant("GetRetentionPolicy")
        policy = await self._policies.get(tenant_id, optional_uuid(request.agent_id, "agent_id"))
        if policy is None:
            raise _not_found(request.agent_id)
        return pb.GetRetentionPolicyResponse(policy=policy_message(policy))

    async def ListRetentionPolicies(
        self, request: pb.ListRetentionPoliciesRequest, context: Any
    ) -> pb.ListRetentionPoliciesResponse:
        tenant_id = own_administered_tenant("ListRetentionPolicies")
        limit = page_size(request.page_size)
        after = _cursor(decode_page_token(request, tenant_id, parts=1))
        found = await self._policies.page(tenant_id, after=after, limit=limit + 1)
        page, has_more = cut_page(found, limit)
        response = pb.ListRetentionPoliciesResponse(policies=[policy_message(one) for one in page])
        if has_more:
            last = str(page[-1].agent_id or TENANT_POLICY)
            response.next_page_token = encode_page_token(request, tenant_id, [last])
        return response

    async def DeleteRetentionPolicy(
        self, request: pb.DeleteRetentionPolicyRequest, context: Any
    ) -> pb.DeleteRetentionPolicyResponse:
        tenant_id = own_administered_tenant("DeleteRetentionPolicy")
        agent_id = optional_uuid(request.agent_id, "agent_id")
        if not await self._policies.delete(tenant_id, agent_id):
            raise _not_found(request.agent_id)
        return pb.DeleteRetentionPolicyResponse()

    async def MoveToColdStorage(
        self, request: pb.MoveToColdStorageRequest, context: Any
    ) -> pb.MoveToColdStorageResponse:
        tenant_id = own_administered_tenant("MoveToColdStorage")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        bounded(request.until_seq, "until_seq", low=0, high=MAX_SEQ)
        moved = await self._cold.move(
            tenant_id, conversation_id, until_seq=request.until_seq or None
        )
        return pb.MoveToColdStorageResponse(
            event_count=moved.event_count, stored_bytes=moved.stored_bytes
        )

    async def RestoreFromColdStorage(
        self, request: pb.RestoreFromColdStorageRequest, context: Any
    ) -> pb.RestoreFromColdStorageResponse:
        tenant_id = own_administered_tenant("RestoreFromColdStorage")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        restored = await self._cold.restore(tenant_id, conversation_id)
        return pb.RestoreFromColdStorageResponse(event_count=restored)


def policy_message(policy: RetentionPolicy) -> pb.RetentionPolicy:
    """Return the policy as the API shows it."""
    days = {name: getattr(policy, name) for name in DAYS}
    return pb.RetentionPolicy(
        agent_id=str(policy.agent_id) if policy.agent_id else "",
        update_time=timestamp_message(policy.updated_at),
        **{name: value for name, value in days.items() if value is not None},
    )


def _policy(message: pb.RetentionPolicy) -> RetentionPolicy:
    agent_id = optional_uuid(message.agent_id, "policy.agent_id")
    if agent_id == TENANT_POLICY:
        raise ResourceNotFoundError("agent", str(agent_id))
    if agent_id is not None and message.HasField("search_log_days"):
        raise FieldInvalidError("policy.search_log_days", "is for the tenant's own policy only")
    days: dict[str, Any] = {name: _days(message, name, high) for name, high in DAYS.items()}
    policy = RetentionPolicy(agent_id, **days)
    _check_order(policy)
    return policy


def _days(message: pb.RetentionPolicy, name: str, high: int) -> int | None:
    if not message.HasField(name):  # type: ignore[arg-type]
        return None
    days = int(getattr(message, name))
    bounded(days, f"policy.{name}", low=1, high=high)
    return days


def _check_order(policy: RetentionPolicy) -> None:
    erase = policy.erase_after_days
    for name in ("archive_after_days", "cold_after_days"):
        earlier = getattr(policy, name)
        if erase is not None and earlier is not None and erase <= earlier:
            raise FieldInvalidError(
                "policy.erase_after_days", f"must be more than {name}, {earlier}", erase
            )


def _cursor(parts: tuple[str, ...] | None) -> UUID | None:
    if parts is None:
        return None
    try:
        return UUID(parts[0])
    except ValueError as error:
        raise PageTokenInvalidError from error


def _not_found(agent_id: str) -> ResourceNotFoundError:
    return ResourceNotFoundError("retention_policy", agent_id or "of the tenant")
