"""ConversationService: creating, reading, listing, changing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as resources
from annals_common.errors import FieldInvalidError, ResourceNotFoundError
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
    struct,
    text,
    timestamp,
)
from annals_storage.commands.conversations import (
    CreateConversation,
    UpdateConversation,
    visible,
)
from annals_storage.domain.conversations import (
    Conversation,
    ConversationChange,
    ConversationQuery,
    ConversationStatus,
)
from annals_storage.handlers.access import Access, data_tenant, own_data_tenant
from annals_storage.handlers.conversation_input import (
    CHANGEABLE,
    MAX_METADATA_FILTER_BYTES,
    MAX_OWNER_CHARS,
    MAX_TITLE_CHARS,
    host_conversation_id,
    new_conversation,
    refuse_two_owners,
)
from annals_storage.handlers.enums import STATUSES
from annals_storage.handlers.output import conversation_message
from annals_storage.handlers.ownership import own_draft, own_query
from annals_storage.ports.conversations import ConversationStore

MAX_VERSION = 2**62


class ConversationHandler:
    """Creates, reads, lists and changes; the use cases are in commands.conversations."""

    def __init__(self, conversations: ConversationStore, access: Access) -> None:
        self._conversations, self._access = conversations, access
        self._create = CreateConversation(conversations)
        self._update = UpdateConversation(conversations)

    async def CreateConversation(
        self, request: pb.CreateConversationRequest, context: Any
    ) -> pb.CreateConversationResponse:
        tenant_id = own_data_tenant("CreateConversation")
        request_id = optional_uuid(request.request_id, "request_id")
        new = new_conversation(own_draft(request.conversation), tenant_id, request_id)
        await self._access.creation("CreateConversation", new.agent_id)
        created = await self._create(tenant_id, new)
        return pb.CreateConversationResponse(conversation=conversation_message(created))

    async def GetConversation(
        self, request: pb.GetConversationRequest, context: Any
    ) -> pb.GetConversationResponse:
        if not request.conversation_id and request.host_conversation_id:
            found = await self._by_host_id(request.host_conversation_id)
            return pb.GetConversationResponse(conversation=conversation_message(found))
        if request.host_conversation_id:
            raise FieldInvalidError(
                "host_conversation_id",
                "must be empty when conversation_id is set",
                request.host_conversation_id,
            )
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        tenant_id = await self._access.conversation("GetConversation", conversation_id)
        found = visible(await self._conversations.get(tenant_id, conversation_id), conversation_id)
        return pb.GetConversationResponse(conversation=conversation_message(found))

    async def GetCurrentConversation(
        self, request: pb.GetCurrentConversationRequest, context: Any
    ) -> pb.GetCurrentConversationResponse:
        tenant_id = own_data_tenant("GetCurrentConversation")
        query = own_query("GetCurrentConversation", _current_query(request))
        if query.user_id is None and query.session_id is None:
            raise FieldInvalidError("user_id", "is required, or session_id")
        found = await self._conversations.page(tenant_id, query)
        if not found:
            whose = query.user_id or query.session_id or ""
            raise ResourceNotFoundError("conversation", f"active of {whose}")
        return pb.GetCurrentConversationResponse(conversation=conversation_message(found[0]))

    async def ListConversations(
        self, request: pb.ListConversationsRequest, context: Any
    ) -> pb.ListConversationsResponse:
        tenant_id = own_data_tenant("ListConversations")
        limit = page_size(request.page_size)
        query = own_query("ListConversations", _query(request, tenant_id, limit + 1))
        found = await self._conversations.page(tenant_id, query)
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

    async def _by_host_id(self, raw_id: str) -> Conversation:
        tenant_id = own_data_tenant("GetConversation")
        host_id = host_conversation_id(raw_id, "host_conversation_id")
        found = await self._conversations.get_by_host_id(tenant_id, host_id or "")
        if found is None or not await self._access.reachable([found.conversation_id]):
            raise ResourceNotFoundError("conversation", raw_id)
        if found.deleted_at is not None:
            raise ResourceNotFoundError("conversation", raw_id)
        return found


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
        org_id=text(request.org_id, "org_id", max_chars=MAX_OWNER_CHARS) or None,
        title_contains=text(request.title_contains, "title_contains", max_chars=MAX_TITLE_CHARS)
        or None,
        metadata=struct(request.metadata, "metadata", max_bytes=MAX_METADATA_FILTER_BYTES),
        limit=limit,
        cursor=decode_time_cursor(cursor),
    )


def _current_query(request: pb.GetCurrentConversationRequest) -> ConversationQuery:
    return ConversationQuery(
        agent_id=optional_uuid(request.agent_id, "agent_id"),
        user_id=text(request.user_id, "user_id", max_chars=MAX_OWNER_CHARS) or None,
        session_id=text(request.session_id, "session_id", max_chars=MAX_OWNER_CHARS) or None,
        statuses=(ConversationStatus.ACTIVE,),
        limit=1,
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
