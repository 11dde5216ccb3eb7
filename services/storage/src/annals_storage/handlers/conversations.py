"""ConversationService."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import conversation_service_pb2_grpc as pb_grpc
from annals.storage.v1 import resources_pb2 as resources
from annals_common.errors import FieldInvalidError
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.validation import (
    bounded,
    enum,
    enums,
    optional_uuid,
    page_size,
    require_uuid,
    text,
    timestamp,
)
from annals_storage.commands.conversations import (
    CreateConversation,
    UpdateConversation,
    existing,
    visible,
)
from annals_storage.domain.conversations import ConversationChange, ConversationQuery
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.conversation_input import (
    CHANGEABLE,
    MAX_OWNER_CHARS,
    new_conversation,
    refuse_two_owners,
)
from annals_storage.handlers.enums import STATUSES
from annals_storage.handlers.output import conversation_message
from annals_storage.ports import ConversationStore

MAX_SUMMARY_CHARS = 100_000
MAX_VERSION = 2**62


class ConversationHandler(pb_grpc.ConversationServiceServicer):
    """Translates; the use cases are in commands.conversations."""

    def __init__(self, conversations: ConversationStore) -> None:
        self._conversations = conversations
        self._create = CreateConversation(conversations)
        self._update = UpdateConversation(conversations)

    async def CreateConversation(
        self, request: pb.CreateConversationRequest, context: Any
    ) -> pb.CreateConversationResponse:
        tenant_id = data_tenant("CreateConversation")
        request_id = optional_uuid(request.request_id, "request_id")
        new = new_conversation(request.conversation, tenant_id, request_id)
        created = await self._create(tenant_id, new)
        return pb.CreateConversationResponse(conversation=conversation_message(created))

    async def GetConversation(
        self, request: pb.GetConversationRequest, context: Any
    ) -> pb.GetConversationResponse:
        tenant_id = data_tenant("GetConversation")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        found = await self._conversations.get(tenant_id, conversation_id)
        return pb.GetConversationResponse(
            conversation=conversation_message(visible(found, conversation_id))
        )

    async def ListConversations(
        self, request: pb.ListConversationsRequest, context: Any
    ) -> pb.ListConversationsResponse:
        tenant_id = data_tenant("ListConversations")
        limit = page_size(request.page_size)
        found = await self._conversations.page(tenant_id, _query(request, tenant_id, limit + 1))
        page, has_more = cut_page(found, limit)
        response = pb.ListConversationsResponse(
            conversations=[conversation_message(item) for item in page]
        )
        if has_more:
            cursor = encode_time_cursor(page[-1].active_at, page[-1].conversation_id)
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        return response

    async def UpdateConversation(
        self, request: pb.UpdateConversationRequest, context: Any
    ) -> pb.UpdateConversationResponse:
        tenant_id = data_tenant("UpdateConversation")
        changed = await self._update(tenant_id, _change(request))
        return pb.UpdateConversationResponse(conversation=conversation_message(changed))

    async def EndConversation(
        self, request: pb.EndConversationRequest, context: Any
    ) -> pb.EndConversationResponse:
        tenant_id = data_tenant("EndConversation")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        summary = text(request.summary, "summary", max_chars=MAX_SUMMARY_CHARS) or None
        ended = await self._conversations.end(tenant_id, conversation_id, summary)
        return pb.EndConversationResponse(
            conversation=conversation_message(visible(ended, conversation_id))
        )

    async def DeleteConversation(
        self, request: pb.DeleteConversationRequest, context: Any
    ) -> pb.DeleteConversationResponse:
        message = await self._set_deleted(
            "DeleteConversation", request.conversation_id, deleted=True
        )
        return pb.DeleteConversationResponse(conversation=message)

    async def RestoreConversation(
        self, request: pb.RestoreConversationRequest, context: Any
    ) -> pb.RestoreConversationResponse:
        message = await self._set_deleted(
            "RestoreConversation", request.conversation_id, deleted=False
        )
        return pb.RestoreConversationResponse(conversation=message)

    async def _set_deleted(
        self, method: str, raw_id: str, *, deleted: bool
    ) -> resources.Conversation:
        tenant_id = data_tenant(method)
        conversation_id = require_uuid(raw_id, "conversation_id")
        found = await self._conversations.set_deleted(tenant_id, conversation_id, deleted=deleted)
        return conversation_message(existing(found, conversation_id))


def _query(request: pb.ListConversationsRequest, tenant_id: UUID, limit: int) -> ConversationQuery:
    cursor = decode_page_token(request, tenant_id, parts=2)
    after, before = request.active_after, request.active_before
    return ConversationQuery(
        agent_id=optional_uuid(request.agent_id, "agent_id"),
        user_id=text(request.user_id, "user_id", max_chars=MAX_OWNER_CHARS) or None,
        session_id=text(request.session_id, "session_id", max_chars=MAX_OWNER_CHARS) or None,
        statuses=enums(request.statuses, STATUSES, "statuses"),
        active_after=timestamp(after, "active_after") if request.HasField("active_after") else None,
        active_before=timestamp(before, "active_before")
        if request.HasField("active_before")
        else None,
        show_deleted=request.show_deleted,
        limit=limit,
        cursor=decode_time_cursor(cursor),
    )


def _change(request: pb.UpdateConversationRequest) -> ConversationChange:
    conversation = request.conversation
    conversation_id = require_uuid(conversation.conversation_id, "conversation.conversation_id")
    bounded(conversation.version, "conversation.version", low=0, high=MAX_VERSION)
    values = {path: _changed_value(conversation, path) for path in _paths(request)}
    refuse_two_owners(values)
    return ConversationChange(
        conversation_id=conversation_id,
        values=values,
        expected_version=conversation.version or None,
    )


def _paths(request: pb.UpdateConversationRequest) -> list[str]:
    paths = sorted(set(request.update_mask.paths))
    if not paths:
        raise FieldInvalidError("update_mask", f"is required: any of {', '.join(CHANGEABLE)}")
    return paths


def _changed_value(conversation: resources.Conversation, path: str) -> Any:
    if path == "status":
        return enum(conversation.status, STATUSES, "conversation.status").value
    read: Callable[[resources.Conversation], Any] | None = CHANGEABLE.get(path)
    if read is None:
        raise FieldInvalidError("update_mask", f"may name {', '.join(CHANGEABLE)}, status", path)
    return read(conversation)
