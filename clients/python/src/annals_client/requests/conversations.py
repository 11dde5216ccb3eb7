"""Conversations of the caller's tenant."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.calls import Call, Pages, safe_call, single_call
from annals_client.values import enum_number, enum_numbers, struct, timestamp

_STATUS_PREFIX = "CONVERSATION_STATUS_"


def create(
    *,
    title: str = "",
    conversation_id: str = "",
    agent_id: str = "",
    user_id: str = "",
    session_id: str = "",
    host_conversation_id: str = "",
    org_id: str = "",
    provider_conversation_id: str = "",
    client_context: res.ClientContext | None = None,
    metadata: Mapping[str, Any] | None = None,
    request_id: str | None = None,
    timeout: float | None = None,
) -> Call[res.Conversation]:
    """Create a conversation. `request_id` (UUID) is made up when absent, so retries are safe."""
    conversation = res.Conversation(
        conversation_id=conversation_id,
        agent_id=agent_id,
        user_id=user_id,
        session_id=session_id,
        host_conversation_id=host_conversation_id,
        org_id=org_id,
        provider_conversation_id=provider_conversation_id,
        title=title,
        client_context=client_context,
        metadata=struct(metadata),
    )
    request = pb.CreateConversationRequest(
        conversation=conversation, request_id=request_id or str(uuid.uuid4())
    )
    call = safe_call(lambda stubs: stubs.conversations.CreateConversation, request, timeout)
    return call.map(lambda answer: answer.conversation)


def get(
    conversation_id: str = "",
    *,
    host_conversation_id: str = "",
    timeout: float | None = None,
) -> Call[res.Conversation]:
    """Read one conversation, by its id or by the host application's own."""
    request = pb.GetConversationRequest(
        conversation_id=conversation_id, host_conversation_id=host_conversation_id
    )
    call = safe_call(lambda stubs: stubs.conversations.GetConversation, request, timeout)
    return call.map(lambda answer: answer.conversation)


def list_all(
    *,
    agent_id: str = "",
    user_id: str = "",
    session_id: str = "",
    statuses: Sequence[int | str] = (),
    active_after: datetime | None = None,
    active_before: datetime | None = None,
    org_id: str = "",
    title_contains: str = "",
    metadata: Mapping[str, Any] | None = None,
    show_deleted: bool = False,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[res.Conversation]:
    """Conversations that meet every condition, last active first."""
    request = pb.ListConversationsRequest(
        agent_id=agent_id,
        user_id=user_id,
        session_id=session_id,
        statuses=enum_numbers(res.ConversationStatus, _STATUS_PREFIX, statuses),
        active_after=timestamp(active_after),
        active_before=timestamp(active_before),
        org_id=org_id,
        title_contains=title_contains,
        metadata=struct(metadata),
        show_deleted=show_deleted,
        page_size=page_size,
    )
    call = safe_call(lambda stubs: stubs.conversations.ListConversations, request, timeout)
    return Pages(call, lambda answer: answer.conversations, limit)


def update(
    conversation_id: str,
    *,
    title: str | None = None,
    status: int | str | None = None,
    agent_id: str | None = None,
    user_id: str | None = None,
    session_id: str | None = None,
    org_id: str | None = None,
    provider_conversation_id: str | None = None,
    last_response_id: str | None = None,
    client_context: res.ClientContext | None = None,
    metadata: Mapping[str, Any] | None = None,
    version: int = 0,
    timeout: float | None = None,
) -> Call[res.Conversation]:
    """Change what is given; None leaves a field alone, "" clears it.

    `version` other than 0 must equal the stored one. Not repeated by itself: in between
    somebody else may have written.
    """
    changes: dict[str, Any] = {
        "title": title,
        "status": _status(status),
        "agent_id": agent_id,
        "user_id": user_id,
        "session_id": session_id,
        "org_id": org_id,
        "provider_conversation_id": provider_conversation_id,
        "last_response_id": last_response_id,
        "client_context": client_context,
        "metadata": struct(metadata),
    }
    given = {name: value for name, value in changes.items() if value is not None}
    request = pb.UpdateConversationRequest(
        conversation=res.Conversation(conversation_id=conversation_id, version=version, **given),
        update_mask=FieldMask(paths=list(given)),
    )
    call = single_call(lambda stubs: stubs.conversations.UpdateConversation, request, timeout)
    return call.map(lambda answer: answer.conversation)


def end(
    conversation_id: str, *, summary: str = "", timeout: float | None = None
) -> Call[res.Conversation]:
    """Complete a conversation; ending twice is no error and keeps the first end_time."""
    request = pb.EndConversationRequest(conversation_id=conversation_id, summary=summary)
    call = safe_call(lambda stubs: stubs.conversations.EndConversation, request, timeout)
    return call.map(lambda answer: answer.conversation)


def delete(conversation_id: str, *, timeout: float | None = None) -> Call[res.Conversation]:
    """Hide a conversation until restored; deleting twice is no error."""
    request = pb.DeleteConversationRequest(conversation_id=conversation_id)
    call = safe_call(lambda stubs: stubs.conversations.DeleteConversation, request, timeout)
    return call.map(lambda answer: answer.conversation)


def restore(conversation_id: str, *, timeout: float | None = None) -> Call[res.Conversation]:
    """Bring a deleted conversation back; restoring twice is no error."""
    request = pb.RestoreConversationRequest(conversation_id=conversation_id)
    call = safe_call(lambda stubs: stubs.conversations.RestoreConversation, request, timeout)
    return call.map(lambda answer: answer.conversation)


def _status(status: int | str | None) -> Any:
    return None if status is None else enum_number(res.ConversationStatus, _STATUS_PREFIX, status)
