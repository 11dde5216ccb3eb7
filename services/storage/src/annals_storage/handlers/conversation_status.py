"""ConversationService: where a conversation stands."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import conversation_service_pb2 as pb
from annals_common.validation import require_uuid, text
from annals_storage.commands.conversations import existing, visible
from annals_storage.handlers.access import Access, data_tenant
from annals_storage.handlers.output import conversation_message
from annals_storage.ports.conversations import ConversationStore

MAX_SUMMARY_CHARS = 100_000


class ConversationStatusHandler:
    """Ends, archives, deletes, restores."""

    def __init__(self, conversations: ConversationStore, access: Access) -> None:
        self._conversations, self._access = conversations, access

    async def EndConversation(
        self, request: pb.EndConversationRequest, context: Any
    ) -> pb.EndConversationResponse:
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        tenant_id = await self._access.conversation("EndConversation", conversation_id)
        summary = text(request.summary, "summary", max_chars=MAX_SUMMARY_CHARS) or None
        ended = await self._conversations.end(tenant_id, conversation_id, summary)
        return pb.EndConversationResponse(
            conversation=conversation_message(visible(ended, conversation_id))
        )

    async def ArchiveConversation(
        self, request: pb.ArchiveConversationRequest, context: Any
    ) -> pb.ArchiveConversationResponse:
        tenant_id = data_tenant("ArchiveConversation")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        archived = await self._conversations.archive(tenant_id, conversation_id)
        return pb.ArchiveConversationResponse(
            conversation=conversation_message(visible(archived, conversation_id))
        )

    async def DeleteConversation(
        self, request: pb.DeleteConversationRequest, context: Any
    ) -> pb.DeleteConversationResponse:
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        tenant_id = await self._access.conversation("DeleteConversation", conversation_id)
        found = await self._conversations.set_deleted(tenant_id, conversation_id, deleted=True)
        return pb.DeleteConversationResponse(
            conversation=conversation_message(existing(found, conversation_id))
        )

    async def RestoreConversation(
        self, request: pb.RestoreConversationRequest, context: Any
    ) -> pb.RestoreConversationResponse:
        tenant_id = data_tenant("RestoreConversation")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        found = await self._conversations.set_deleted(tenant_id, conversation_id, deleted=False)
        return pb.RestoreConversationResponse(
            conversation=conversation_message(existing(found, conversation_id))
        )
