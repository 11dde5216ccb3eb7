"""A valid request of every method, over resources of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from tests.support.appending import append, empty_conversation, ids
from tests.support.storage import Tenant
from tests.support.summaries import put_request, summary_of

from annals.storage.v1 import context_cache_service_pb2 as cache_pb
from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import erasure_service_pb2 as erasure_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import index_service_pb2 as index_pb
from annals.storage.v1 import job_service_pb2 as job_pb
from annals.storage.v1 import lifecycle_service_pb2 as lifecycle_pb
from annals.storage.v1 import memory_service_pb2 as memory_pb
from annals.storage.v1 import provider_service_pb2 as provider_pb
from annals.storage.v1 import relationship_service_pb2 as relationship_pb
from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import search_service_pb2 as search_pb
from annals.storage.v1 import summary_service_pb2 as summary_pb
from annals.storage.v1 import tenant_service_pb2 as tenant_pb
from annals.storage.v1 import topic_service_pb2 as topic_pb
from annals.storage.v1 import usage_service_pb2 as usage_pb
from annals_client import tool_call, user

Build = Callable[[Tenant], Awaitable[Any]]


async def _update(tenant: Tenant) -> Any:
    request = conversation_pb.UpdateConversationRequest(
        conversation=res.Conversation(
            conversation_id=await empty_conversation(tenant), status=res.CONVERSATION_STATUS_ACTIVE
        )
    )
    request.update_mask.paths.extend(
        ["agent_id", "user_id", "session_id", "title", "status", "client_context", "metadata"]
    )
    request.update_mask.paths.extend(["org_id", "provider_conversation_id", "last_response_id"])
    return request


async def _append(tenant: Tenant) -> Any:
    room = await empty_conversation(tenant)
    return event_pb.AppendEventsRequest(conversation_id=room, events=[user("hi")])


async def _stream(tenant: Tenant) -> Any:
    return event_pb.StreamAppendEventsRequest(append=await _append(tenant))


async def _event_ids(tenant: Tenant) -> tuple[str, list[str]]:
    stored = await append(tenant.raw, await empty_conversation(tenant), user("hi"))
    return stored.conversation_id, ids(stored)


async def _get_event(tenant: Tenant) -> Any:
    room, found = await _event_ids(tenant)
    return event_pb.GetEventRequest(conversation_id=room, event_id=found[0])


async def _batch_get(tenant: Tenant) -> Any:
    return event_pb.BatchGetEventsRequest(event_ids=(await _event_ids(tenant))[1])


async def _store_turn(tenant: Tenant) -> Any:
    room = await empty_conversation(tenant)
    return event_pb.StoreTurnRequest(conversation_id=room, turn_id="t", event=user("hi"))


async def _edit_event(tenant: Tenant) -> Any:
    _, found = await _event_ids(tenant)
    return event_pb.EditEventRequest(event_id=found[0], event=user("bye"))


def _of_event(kind: Callable[..., Any]) -> Build:
    async def build(tenant: Tenant) -> Any:
        return kind(event_id=(await _event_ids(tenant))[1][0])

    return build


def _in_conversation(kind: Callable[..., Any]) -> Build:
    async def build(tenant: Tenant) -> Any:
        room, found = await _event_ids(tenant)
        return kind(conversation_id=room, event_id=found[0])

    return build


async def _tool_call(tenant: Tenant) -> Any:
    room = await empty_conversation(tenant)
    await append(tenant.raw, room, tool_call("my-call", "t"))
    return event_pb.GetToolCallRequest(conversation_id=room, tool_call_id="my-call")


async def _list_tool_calls(tenant: Tenant) -> Any:
    return event_pb.ListToolCallsRequest(message_event_id=(await _event_ids(tenant))[1][0])


async def _get_agent(tenant: Tenant) -> Any:
    agent = await tenant.client.agents.create("a")
    return tenant_pb.GetAgentRequest(agent_id=agent.agent_id)


async def _revoke(tenant: Tenant) -> Any:
    key = await tenant.client.keys.create("k", tenant_id=tenant.tenant_id)
    return tenant_pb.RevokeApiKeyRequest(api_key_id=key.api_key.api_key_id)


async def _update_agent(tenant: Tenant) -> Any:
    agent = await tenant.client.agents.create("a")
    request = tenant_pb.UpdateAgentRequest(
        agent=res.Agent(agent_id=agent.agent_id, display_name="b", temperature=0.5)
    )
    paths = ["display_name", "system_prompt", "model", "temperature", "tools_json"]
    more = ["output_schema_json", "end_user_mode", "context_injection", "provider_logs_enabled"]
    request.update_mask.paths.extend([*paths, *more, "index_config"])
    return request


async def _search_parameters(_tenant: Tenant) -> Any:
    request = tenant_pb.UpdateSearchParametersRequest()
    request.parameters.time_bonus = 0.2
    request.update_mask.paths.append("time_bonus")
    return request


def _signing_key() -> Any:
    return tenant_pb.CreateSigningKeyRequest(
        signing_key=res.SigningKey(
            algorithm=res.SIGNING_ALGORITHM_HS256, issuer="https://issuer", audience="annals"
        )
    )


async def _create_signing_key(_tenant: Tenant) -> Any:
    return _signing_key()


async def _revoke_signing_key(tenant: Tenant) -> Any:
    created = await tenant.raw.call("CreateSigningKey", _signing_key())
    return tenant_pb.RevokeSigningKeyRequest(signing_key_id=created.signing_key.signing_key_id)


async def _current(tenant: Tenant) -> Any:
    await tenant.client.conversations.create(user_id="current-user")
    return conversation_pb.GetCurrentConversationRequest(user_id="current-user")


async def _merge_session(_tenant: Tenant) -> Any:
    return conversation_pb.MergeSessionRequest(session_id=f"session {uuid4()}", user_id="u-1")


async def _create_agent(_tenant: Tenant) -> Any:
    agent = res.Agent(agent_id=str(uuid4()), display_name="a")
    return tenant_pb.CreateAgentRequest(agent=agent)


async def _relationship(tenant: Tenant) -> Any:
    room = await empty_conversation(tenant)
    return relationship_pb.CreateRelationshipRequest(
        relationship=relationship_pb.Relationship(
            type=relationship_pb.RELATIONSHIP_TYPE_REFERS_TO,
            source=relationship_pb.Node(kind=relationship_pb.NODE_KIND_CONVERSATION, id=room),
            target=relationship_pb.Node(kind=relationship_pb.NODE_KIND_EXTERNAL, id="a topic"),
        )
    )


async def _relationships(tenant: Tenant) -> Any:
    room = await empty_conversation(tenant)
    node = relationship_pb.Node(kind=relationship_pb.NODE_KIND_CONVERSATION, id=room)
    return relationship_pb.ListRelationshipsRequest(node=node)


async def _delete_relationship(tenant: Tenant) -> Any:
    made = await tenant.raw.call("CreateRelationship", await _relationship(tenant))
    relationship_id = made.relationship.relationship_id
    return relationship_pb.DeleteRelationshipRequest(relationship_id=relationship_id)


async def _create_attachment(tenant: Tenant) -> Any:
    room, found = await _event_ids(tenant)
    attachment = relationship_pb.Attachment(
        attachment_id=str(uuid4()), conversation_id=room, uri="s3://bucket/key"
    )
    return relationship_pb.CreateAttachmentRequest(attachment=attachment, event_id=found[0])


async def _get_attachment(tenant: Tenant) -> Any:
    made = await tenant.raw.call("CreateAttachment", await _create_attachment(tenant))
    return relationship_pb.GetAttachmentRequest(attachment_id=made.attachment.attachment_id)


async def logged_conversation(tenant: Tenant) -> str:
    """A conversation of an agent that keeps provider logs."""
    request = tenant_pb.CreateAgentRequest(
        agent=res.Agent(display_name="a", provider_logs_enabled=True)
    )
    agent = (await tenant.raw.call("CreateAgent", request)).agent
    room = await tenant.client.conversations.create(agent_id=agent.agent_id)
    return room.conversation_id


async def _create_provider_log(tenant: Tenant) -> Any:
    log = provider_pb.ProviderLog(
        conversation_id=await logged_conversation(tenant), provider="openai", request_json="{}"
    )
    return provider_pb.CreateProviderLogRequest(provider_log=log)


async def _store_memory(tenant: Tenant) -> Any:
    room = await empty_conversation(tenant)
    return memory_pb.StoreMemoryRequest(
        memory=res.Memory(conversation_id=room, content="hi", tags=["t"])
    )


async def memory_id_of(tenant: Tenant) -> str:
    """A new memory's id."""
    stored = await tenant.raw.call("StoreMemory", await _store_memory(tenant))
    return str(stored.memory.memory_id)


def _of_memory(kind: Callable[..., Any]) -> Build:
    async def build(tenant: Tenant) -> Any:
        return kind(memory_id=await memory_id_of(tenant))

    return build


async def _update_memory(tenant: Tenant) -> Any:
    request = memory_pb.UpdateMemoryRequest(
        memory=res.Memory(memory_id=await memory_id_of(tenant), content="ho")
    )
    request.update_mask.paths.extend(["content", "tags", "metadata"])
    return request


async def receipt_id_of(tenant: Tenant) -> str:
    """The id of a new receipt, of a user who never was."""
    erased = await tenant.raw.call("EraseUser", erasure_pb.EraseUserRequest(user_id="nobody"))
    return str(erased.receipt.receipt_id)


async def _erase_event(tenant: Tenant) -> Any:
    return erasure_pb.EraseEventRequest(event_id=(await _event_ids(tenant))[1][0])


async def _get_receipt(tenant: Tenant) -> Any:
    return erasure_pb.GetErasureReceiptRequest(receipt_id=await receipt_id_of(tenant))


async def _verify_erasure(tenant: Tenant) -> Any:
    receipt_id = await receipt_id_of(tenant)
    return erasure_pb.VerifyErasureRequest(receipt_id=receipt_id, user_id="nobody")


async def _set_policy(_tenant: Tenant) -> Any:
    policy = lifecycle_pb.RetentionPolicy(archive_after_days=30)
    return lifecycle_pb.SetRetentionPolicyRequest(policy=policy)


def _of_policy(kind: Callable[..., Any]) -> Build:
    async def build(tenant: Tenant) -> Any:
        await tenant.raw.call("SetRetentionPolicy", await _set_policy(tenant))
        return kind()

    return build


async def _put_summaries(tenant: Tenant) -> Any:
    room, found = await _event_ids(tenant)
    run = summary_pb.SummaryRun(
        provider="test", model="by hand", status=summary_pb.SUMMARY_RUN_STATUS_COMPLETED
    )
    run.start_time.GetCurrentTime()
    return await put_request(tenant, room, summary_of(1, 1, cites=found[0]), run=run)


async def _get_summary(tenant: Tenant) -> Any:
    return summary_pb.GetSummaryRequest(summary_id=await summary_id_of(tenant))


async def _delete_summary(tenant: Tenant) -> Any:
    return summary_pb.DeleteSummaryRequest(summary_id=await summary_id_of(tenant))


async def summary_id_of(tenant: Tenant) -> str:
    """A new summary's id."""
    stored = await tenant.raw.call("PutSummaries", await _put_summaries(tenant))
    return str(stored.summaries[0].summary_id)


async def _import(tenant: Tenant) -> Any:
    request = conversation_pb.ExportConversationRequest(
        conversation_id=await empty_conversation(tenant)
    )
    parts = [part.data async for part in tenant.raw.answers("ExportConversation", request)]
    return conversation_pb.ImportConversationsRequest(data=b"".join(parts))


def _of_conversation(kind: Callable[..., Any], **fields: Any) -> Build:
    async def build(tenant: Tenant) -> Any:
        return kind(conversation_id=await empty_conversation(tenant), **fields)

    return build


def _plain(kind: Callable[..., Any], **fields: Any) -> Build:
    async def build(_tenant: Tenant) -> Any:
        return kind(**fields)

    return build


VALID: dict[str, Build] = {
    "CreateTenant": _plain(tenant_pb.CreateTenantRequest, display_name="t"),
    "GetCaller": _plain(tenant_pb.GetCallerRequest),
    "GetTenant": _plain(tenant_pb.GetTenantRequest, tenant_id=str(uuid4())),
    "ListTenants": _plain(tenant_pb.ListTenantsRequest, page_size=1),
    "CreateAgent": _create_agent,
    "GetAgent": _get_agent,
    "ListAgents": _plain(tenant_pb.ListAgentsRequest),
    "UpdateAgent": _update_agent,
    "GetSearchParameters": _plain(tenant_pb.GetSearchParametersRequest),
    "UpdateSearchParameters": _search_parameters,
    "CreateSigningKey": _create_signing_key,
    "ListSigningKeys": _plain(tenant_pb.ListSigningKeysRequest),
    "RevokeSigningKey": _revoke_signing_key,
    "CreateApiKey": _plain(tenant_pb.CreateApiKeyRequest, scopes=[res.API_KEY_SCOPE_DATA]),
    "ListApiKeys": _plain(tenant_pb.ListApiKeysRequest),
    "RevokeApiKey": _revoke,
    "CreateConversation": _plain(conversation_pb.CreateConversationRequest),
    "GetConversation": _of_conversation(conversation_pb.GetConversationRequest),
    "ListConversations": _plain(conversation_pb.ListConversationsRequest),
    "UpdateConversation": _update,
    "GetCurrentConversation": _current,
    "MergeSession": _merge_session,
    "ArchiveConversation": _of_conversation(conversation_pb.ArchiveConversationRequest),
    "EndConversation": _of_conversation(conversation_pb.EndConversationRequest),
    "DeleteConversation": _of_conversation(conversation_pb.DeleteConversationRequest),
    "RestoreConversation": _of_conversation(conversation_pb.RestoreConversationRequest),
    "AppendEvents": _append,
    "StreamAppendEvents": _stream,
    "GetEvent": _get_event,
    "BatchGetEvents": _batch_get,
    "ListEvents": _of_conversation(event_pb.ListEventsRequest),
    "ExportConversation": _of_conversation(conversation_pb.ExportConversationRequest),
    "ImportConversations": _import,
    "ForkConversation": _in_conversation(conversation_pb.ForkConversationRequest),
    "ListPeriod": _of_conversation(event_pb.ListPeriodRequest, period="today"),
    "GetThread": _of_event(event_pb.GetThreadRequest),
    "GetToolCall": _tool_call,
    "ListToolCalls": _list_tool_calls,
    "GetEventChunks": _of_event(event_pb.GetEventChunksRequest),
    "RevertToEvent": _in_conversation(event_pb.RevertToEventRequest),
    "CreateBranch": _in_conversation(event_pb.CreateBranchRequest),
    "ListBranches": _of_conversation(event_pb.ListBranchesRequest),
    "SelectBranch": _of_conversation(event_pb.SelectBranchRequest, branch=1),
    "StoreTurn": _store_turn,
    "EditEvent": _edit_event,
    "DeleteEvent": _of_event(event_pb.DeleteEventRequest),
    "RestoreEvent": _of_event(event_pb.RestoreEventRequest),
    "ListObservations": _of_event(event_pb.ListObservationsRequest),
    "WatchEvents": _of_conversation(event_pb.WatchEventsRequest),
    "CreateRelationship": _relationship,
    "ListRelationships": _relationships,
    "DeleteRelationship": _delete_relationship,
    "ListRelationshipTypes": _plain(relationship_pb.ListRelationshipTypesRequest),
    "CreateAttachment": _create_attachment,
    "GetAttachment": _get_attachment,
    "ListAttachments": _of_conversation(relationship_pb.ListAttachmentsRequest),
    "ListUsage": _plain(usage_pb.ListUsageRequest),
    "ListLargeConversations": _plain(usage_pb.ListLargeConversationsRequest),
    "CreateProviderLog": _create_provider_log,
    "ListProviderLogs": _of_conversation(provider_pb.ListProviderLogsRequest),
    "GetCachedContext": _of_conversation(
        cache_pb.GetCachedContextRequest,
        request_digest=bytes(32),
        held_state=bytes(32),
        previous_context_version="v",
    ),
    "PutCachedContext": _of_conversation(
        cache_pb.PutCachedContextRequest,
        request_digest=bytes(32),
        state=bytes(32),
        context_version="v",
        body=b"x",
    ),
    "StoreMemory": _store_memory,
    "GetMemory": _of_memory(memory_pb.GetMemoryRequest),
    "ListMemories": _plain(memory_pb.ListMemoriesRequest),
    "UpdateMemory": _update_memory,
    "DeleteMemory": _of_memory(memory_pb.DeleteMemoryRequest),
    "SearchMemories": _plain(memory_pb.SearchMemoriesRequest, query="hello"),
    "ListSearchLog": _plain(search_pb.ListSearchLogRequest),
    "SearchEvents": _plain(search_pb.SearchEventsRequest, query="hello"),
    "GetIndexStatus": _plain(index_pb.GetIndexStatusRequest),
    "LeaseJobs": _plain(job_pb.LeaseJobsRequest, kinds=[job_pb.JOB_KIND_TOPICS]),
    "HeartbeatJob": _plain(job_pb.HeartbeatJobRequest),
    "CompleteJob": _plain(job_pb.CompleteJobRequest, generation=1),
    "FailJob": _plain(job_pb.FailJobRequest, generation=1, error="e"),
    "ReleaseJob": _plain(job_pb.ReleaseJobRequest),
    "GetClustering": _plain(topic_pb.GetClusteringRequest),
    "ListChunkEmbeddings": _plain(topic_pb.ListChunkEmbeddingsRequest),
    "ApplyTopics": _plain(topic_pb.ApplyTopicsRequest, embedding_model="m"),
    "ListTopics": _of_conversation(topic_pb.ListTopicsRequest),
    "BatchGetTopics": _plain(topic_pb.BatchGetTopicsRequest, topic_ids=[str(uuid4())]),
    "ListTopicEvents": _of_conversation(topic_pb.ListTopicEventsRequest, topic_id=str(uuid4())),
    "ListTopicPeriods": _of_conversation(topic_pb.ListTopicPeriodsRequest),
    "GetJobStatus": _plain(job_pb.GetJobStatusRequest),
    "ListParkedJobs": _plain(job_pb.ListParkedJobsRequest),
    "RetryParkedJobs": _plain(job_pb.RetryParkedJobsRequest),
    "ListParkedEntries": _plain(index_pb.ListParkedEntriesRequest),
    "RetryParkedEntries": _plain(index_pb.RetryParkedEntriesRequest),
    "EraseEvent": _erase_event,
    "EraseConversation": _of_conversation(erasure_pb.EraseConversationRequest),
    "EraseUser": _plain(erasure_pb.EraseUserRequest, user_id="nobody"),
    "EraseTenant": _plain(
        erasure_pb.EraseTenantRequest, tenant_id=str(uuid4()), confirm_display_name="t"
    ),
    "GetErasureReceipt": _get_receipt,
    "ListErasureReceipts": _plain(erasure_pb.ListErasureReceiptsRequest),
    "VerifyErasure": _verify_erasure,
    "GetSummarySource": _of_conversation(summary_pb.GetSummarySourceRequest),
    "PutSummaries": _put_summaries,
    "GetSummary": _get_summary,
    "ListSummaries": _of_conversation(summary_pb.ListSummariesRequest),
    "DeleteSummary": _delete_summary,
    "ListSummaryRuns": _of_conversation(summary_pb.ListSummaryRunsRequest),
    "SetRetentionPolicy": _set_policy,
    "GetRetentionPolicy": _of_policy(lifecycle_pb.GetRetentionPolicyRequest),
    "ListRetentionPolicies": _plain(lifecycle_pb.ListRetentionPoliciesRequest),
    "DeleteRetentionPolicy": _of_policy(lifecycle_pb.DeleteRetentionPolicyRequest),
    "MoveToColdStorage": _of_conversation(lifecycle_pb.MoveToColdStorageRequest),
    "RestoreFromColdStorage": _of_conversation(lifecycle_pb.RestoreFromColdStorageRequest),
}
WORKER_ONLY = frozenset(
    (
        *("LeaseJobs", "HeartbeatJob", "CompleteJob", "FailJob", "ReleaseJob"),
        *("GetClustering", "ListChunkEmbeddings", "ApplyTopics"),
    )
)
"""For the worker key, or the token of a leased job."""
ADMIN_ONLY = frozenset({"CreateTenant", "EraseTenant", "GetTenant", "ListTenants", *WORKER_ONLY})
"""Refused to every key of a tenant."""


async def send(tenant: Tenant, name: str, request: Any) -> Any:
    """Call any method with one message; a stream answers with its acknowledgement."""
    if name in {"WatchEvents", "ExportConversation"}:
        return await anext(aiter(tenant.raw.answers(name, request)))
    if name == "ImportConversations":
        return await tenant.raw.upload(name, [request])
    if name != "StreamAppendEvents":
        return await tenant.raw.call(name, request)
    return await tenant.raw.append_one(request)
