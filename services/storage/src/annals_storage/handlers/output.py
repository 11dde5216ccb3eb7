"""Domain objects to messages of the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import resources_pb2 as pb
from annals_storage.domain.appending import AppendResult
from annals_storage.domain.branches import Branch
from annals_storage.domain.conversations import Conversation
from annals_storage.domain.events import AppendedEvent, Event, EventBody, EventType
from annals_storage.domain.signing import SigningKey
from annals_storage.domain.tenancy import Agent, ApiKey, Tenant
from annals_storage.handlers.enums import (
    END_USER_MODE_NUMBERS,
    EVENT_STATUS_NUMBERS,
    EVENT_TYPE_NUMBERS,
    KIND_NUMBERS,
    ROLE_NUMBERS,
    SCOPE_NUMBERS,
    SIGNING_ALGORITHM_NUMBERS,
    STATUS_NUMBERS,
)
from annals_storage.handlers.index_config import index_config_message

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_PER_DAY = 86_400


def timestamp_message(moment: datetime | None) -> Timestamp | None:
    """Return a Timestamp, or None."""
    if moment is None:
        return None
    # A third of what Timestamp.FromDatetime costs; a page has a thousand of them.
    since = moment - _EPOCH
    seconds = since.days * SECONDS_PER_DAY + since.seconds
    return Timestamp(seconds=seconds, nanos=since.microseconds * 1000)


def event_message(event: Event) -> pb.Event:
    """Return the event as the API shows it."""
    message = pb.Event(
        event_id=str(event.event_id),
        conversation_id=str(event.conversation_id),
        seq=event.seq,
        type=EVENT_TYPE_NUMBERS[event.body.type],
        model=event.model or "",
        provider_response_id=event.provider_response_id or "",
        parent_event_id=str(event.parent_event_id) if event.parent_event_id else "",
        event_time=timestamp_message(event.event_time),
        create_time=timestamp_message(event.created_at),
        token_count=event.token_count,
        branch=event.branch,
        turn_id=event.turn_id or "",
        turn_key=event.turn_key,
        status=EVENT_STATUS_NUMBERS[event.status],
        version=event.version,
        edit_time=timestamp_message(event.edited_at),
        delete_time=timestamp_message(event.deleted_at),
        erase_time=timestamp_message(event.erased_at),
        superseded_by_event_id=str(event.superseded_by) if event.superseded_by else "",
        origin_event_id=str(event.origin_event_id) if event.origin_event_id else "",
        **_body_field(event.body),
    )
    if event.usage:
        for name in event.usage.__slots__:
            setattr(message.usage, name, getattr(event.usage, name))
    if event.metadata:
        message.metadata.update(event.metadata)
    return message


def _body_field(body: EventBody) -> dict[str, Any]:
    match body.type:
        case EventType.MESSAGE:
            return {"message": _message_body(body)}
        case EventType.TOOL_CALL:
            return {"tool_call": _tool_call_body(body)}
        case EventType.TOOL_RESULT:
            return {"tool_result": _tool_result_body(body)}
        case EventType.SYSTEM:
            return {"system": pb.SystemBody(content=body.content or "")}
        case EventType.ERROR:
            return {
                "error": pb.ErrorBody(
                    error_type=body.error_type or "", error_message=body.error_message or ""
                )
            }


def _message_body(body: EventBody) -> pb.MessageBody:
    return pb.MessageBody(
        role=ROLE_NUMBERS[body.role] if body.role else pb.ROLE_UNSPECIFIED,
        content=body.content or "",
        author_name=body.author_name or "",
    )


def _tool_call_body(body: EventBody) -> pb.ToolCallBody:
    return pb.ToolCallBody(
        tool_call_id=body.tool_call_id or "",
        tool_name=body.tool_name or "",
        input_json=body.tool_input or "",
    )


def _tool_result_body(body: EventBody) -> pb.ToolResultBody:
    return pb.ToolResultBody(
        tool_call_id=body.tool_call_id or "",
        tool_name=body.tool_name or "",
        result=body.tool_result or "",
        is_error=body.is_error,
    )


def branch_message(branch: Branch) -> pb.Branch:
    """Return the branch as the API shows it."""
    return pb.Branch(
        branch=branch.branch,
        parent_branch=branch.parent_branch,
        fork_seq=branch.fork_seq,
        display_name=branch.display_name,
        current=branch.current,
        last_seq=branch.last_seq,
        event_count=branch.event_count,
        create_time=timestamp_message(branch.created_at),
    )


def appended_message(event: AppendedEvent) -> event_pb.AppendedEvent:
    """Return what became of one event."""
    return event_pb.AppendedEvent(
        event_id=str(event.event_id),
        seq=event.seq,
        replayed=event.replayed,
        token_count=event.token_count,
        create_time=timestamp_message(event.created_at),
    )


def append_response(result: AppendResult) -> event_pb.AppendEventsResponse:
    """Return the answer of AppendEvents."""
    return event_pb.AppendEventsResponse(
        conversation_id=str(result.conversation_id),
        events=[appended_message(event) for event in result.events],
        last_seq=result.last_seq,
    )


def conversation_message(conversation: Conversation) -> pb.Conversation:
    """Return the conversation as the API shows it."""
    message = pb.Conversation(
        conversation_id=str(conversation.conversation_id),
        agent_id=str(conversation.agent_id) if conversation.agent_id else "",
        user_id=conversation.user_id or "",
        session_id=conversation.session_id or "",
        title=conversation.title,
        status=STATUS_NUMBERS[conversation.status],
        end_summary=conversation.end_summary,
        last_seq=conversation.last_seq,
        event_count=conversation.event_count,
        message_count=conversation.message_count,
        token_count=conversation.token_count,
        version=conversation.version,
        create_time=timestamp_message(conversation.created_at),
        update_time=timestamp_message(conversation.updated_at),
        last_event_time=timestamp_message(conversation.last_event_at),
        end_time=timestamp_message(conversation.ended_at),
        delete_time=timestamp_message(conversation.deleted_at),
        host_conversation_id=conversation.host_id or "",
        org_id=conversation.org_id or "",
        provider_conversation_id=conversation.provider_conversation_id,
        last_response_id=conversation.last_response_id,
        current_branch=conversation.current_branch,
        branch_count=conversation.branch_count,
        memory_count=conversation.memory_count,
        forked_from=_fork_origin(conversation),
        archive_time=timestamp_message(conversation.archived_at),
    )
    if conversation.client_context:
        message.client_context.CopyFrom(_client_context(conversation.client_context))
    if conversation.metadata:
        message.metadata.update(conversation.metadata)
    return message


def _fork_origin(conversation: Conversation) -> pb.ForkOrigin | None:
    if conversation.forked_from_conversation_id is None:
        return None
    return pb.ForkOrigin(
        conversation_id=str(conversation.forked_from_conversation_id),
        event_id=str(conversation.forked_from_event_id or ""),
        seq=conversation.forked_from_seq or 0,
    )


def _client_context(values: dict[str, Any]) -> pb.ClientContext:
    message = pb.ClientContext(**{k: v for k, v in values.items() if k != "custom"})
    if custom := values.get("custom"):
        message.custom.update(custom)
    return message


def tenant_message(tenant: Tenant) -> pb.Tenant:
    """Return the tenant as the API shows it."""
    return pb.Tenant(
        tenant_id=str(tenant.tenant_id),
        display_name=tenant.display_name,
        create_time=timestamp_message(tenant.created_at),
    )


def agent_message(agent: Agent) -> pb.Agent:
    """Return the agent as the API shows it."""
    return pb.Agent(
        agent_id=str(agent.agent_id),
        display_name=agent.display_name,
        system_prompt=agent.system_prompt,
        model=agent.model,
        temperature=agent.temperature,
        tools_json=agent.tools_json,
        output_schema_json=agent.output_schema_json,
        create_time=timestamp_message(agent.created_at),
        update_time=timestamp_message(agent.updated_at),
        end_user_mode=END_USER_MODE_NUMBERS[agent.end_user_mode],
        context_injection=pb.ContextInjection(**agent.context_injection)
        if agent.context_injection
        else None,
        provider_logs_enabled=agent.provider_logs_enabled,
        index_config=index_config_message(agent.index_config),
    )


def api_key_message(key: ApiKey) -> pb.ApiKey:
    """Return the key as the API shows it, without its secret."""
    return pb.ApiKey(
        api_key_id=str(key.api_key_id),
        display_name=key.display_name,
        scopes=sorted(SCOPE_NUMBERS[scope] for scope in key.scopes),
        create_time=timestamp_message(key.created_at),
        expire_time=timestamp_message(key.expires_at),
        revoke_time=timestamp_message(key.revoked_at),
        kind=KIND_NUMBERS[key.publishable],
        agent_id=str(key.agent_id or ""),
    )


def signing_key_message(key: SigningKey) -> pb.SigningKey:
    """Return the key as the API shows it, without its secret."""
    return pb.SigningKey(
        signing_key_id=str(key.signing_key_id),
        display_name=key.display_name,
        algorithm=SIGNING_ALGORITHM_NUMBERS[key.algorithm],
        public_key_pem=key.public_key_pem or "",
        issuer=key.issuer,
        audience=key.audience,
        create_time=timestamp_message(key.created_at),
        expire_time=timestamp_message(key.expires_at),
        revoke_time=timestamp_message(key.revoked_at),
    )
