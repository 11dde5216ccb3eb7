"""What becomes of conversations as they age. Needs a key with TENANT_ADMIN."""

from __future__ import annotations

from annals.storage.v1 import lifecycle_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call, single_call

COLD_TIMEOUT_S = 600.0


def set_policy(
    agent_id: str = "",
    *,
    archive_after_days: int | None = None,
    cold_after_days: int | None = None,
    erase_after_days: int | None = None,
    erase_deleted_after_days: int | None = None,
    provider_log_days: int | None = None,
    search_log_days: int | None = None,
    timeout: float | None = None,
) -> Call[pb.RetentionPolicy]:
    """Set the policy of an agent, or of the tenant, in whole: None means never."""
    policy = pb.RetentionPolicy(
        agent_id=agent_id,
        archive_after_days=archive_after_days,
        cold_after_days=cold_after_days,
        erase_after_days=erase_after_days,
        erase_deleted_after_days=erase_deleted_after_days,
        provider_log_days=provider_log_days,
        search_log_days=search_log_days,
    )
    request = pb.SetRetentionPolicyRequest(policy=policy)
    call = safe_call(lambda stubs: stubs.lifecycle.SetRetentionPolicy, request, timeout)
    return call.map(lambda answer: answer.policy)


def get(agent_id: str = "", *, timeout: float | None = None) -> Call[pb.RetentionPolicy]:
    """Read the policy of an agent, or of the tenant."""
    request = pb.GetRetentionPolicyRequest(agent_id=agent_id)
    call = safe_call(lambda stubs: stubs.lifecycle.GetRetentionPolicy, request, timeout)
    return call.map(lambda answer: answer.policy)


def list_all(
    *, page_size: int = 0, limit: int | None = None, timeout: float | None = None
) -> Pages[pb.RetentionPolicy]:
    """All policies, the tenant's own first."""
    request = pb.ListRetentionPoliciesRequest(page_size=page_size)
    call = safe_call(lambda stubs: stubs.lifecycle.ListRetentionPolicies, request, timeout)
    return Pages(call, lambda answer: answer.policies, limit)


def delete(agent_id: str = "", *, timeout: float | None = None) -> Call[None]:
    """Remove a policy. Not repeated by itself: the second time it is not found."""
    request = pb.DeleteRetentionPolicyRequest(agent_id=agent_id)
    call = single_call(lambda stubs: stubs.lifecycle.DeleteRetentionPolicy, request, timeout)
    return call.map(lambda _answer: None)


def move_to_cold(
    conversation_id: str, *, until_seq: int = 0, timeout: float = COLD_TIMEOUT_S
) -> Call[pb.MoveToColdStorageResponse]:
    """Move the content of old events to cold storage; reads bring it back by themselves."""
    request = pb.MoveToColdStorageRequest(conversation_id=conversation_id, until_seq=until_seq)
    return safe_call(lambda stubs: stubs.lifecycle.MoveToColdStorage, request, timeout)


def restore_from_cold(conversation_id: str, *, timeout: float = COLD_TIMEOUT_S) -> Call[int]:
    """Move it back for good; return the number of events."""
    request = pb.RestoreFromColdStorageRequest(conversation_id=conversation_id)
    call = safe_call(lambda stubs: stubs.lifecycle.RestoreFromColdStorage, request, timeout)
    return call.map(lambda answer: answer.event_count)
