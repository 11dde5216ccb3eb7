"""ExportConversation and ImportConversations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from annals.storage.v1 import conversation_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.validation import bounded, require_uuid
from annals_storage.commands.exporting import ExportConversation
from annals_storage.commands.importing import ImportConversations
from annals_storage.domain.export_formats import FILE_TYPES, ExportFormat
from annals_storage.handlers.access import data_tenant

MAX_BRANCH = 2**31 - 1
EXPORT_FORMATS = {
    pb.EXPORT_FORMAT_UNSPECIFIED: ExportFormat.JSON_LINES,
    pb.EXPORT_FORMAT_JSON: ExportFormat.JSON,
    pb.EXPORT_FORMAT_JSON_LINES: ExportFormat.JSON_LINES,
    pb.EXPORT_FORMAT_MARKDOWN: ExportFormat.MARKDOWN,
    pb.EXPORT_FORMAT_CSV: ExportFormat.CSV,
}


class TransferHandler:
    """Translates; the use cases are commands.exporting and commands.importing."""

    def __init__(self, export: ExportConversation, load: ImportConversations) -> None:
        self._export, self._load = export, load

    async def ExportConversation(
        self, request: pb.ExportConversationRequest, context: Any
    ) -> AsyncIterator[pb.ExportConversationResponse]:
        tenant_id = data_tenant("ExportConversation")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        if request.format not in EXPORT_FORMATS:
            raise FieldInvalidError("format", "must be one of the known values", request.format)
        form = EXPORT_FORMATS[request.format]
        branch = _branch(request, form)
        suffix, media_type = FILE_TYPES[form]
        names = {
            "file_name": f"conversation-{conversation_id}.{suffix}",
            "media_type": media_type,
        }
        async with aclosing(self._export(tenant_id, conversation_id, form, branch)) as parts:
            async for part in parts:
                yield pb.ExportConversationResponse(data=part, **names)
                names = {}

    async def ImportConversations(
        self, request_iterator: AsyncIterator[pb.ImportConversationsRequest], context: Any
    ) -> pb.ImportConversationsResponse:
        tenant_id = data_tenant("ImportConversations")
        summary = await self._load(tenant_id, (request.data async for request in request_iterator))
        return pb.ImportConversationsResponse(
            conversation_count=summary.conversation_count,
            event_count=summary.event_count,
            memory_count=summary.memory_count,
            skipped_conversation_count=summary.skipped_conversation_count,
            conversation_ids=[str(each) for each in summary.conversation_ids],
        )


def _branch(request: pb.ExportConversationRequest, form: ExportFormat) -> int | None:
    bounded(request.branch, "branch", low=0, high=MAX_BRANCH)
    if form is ExportFormat.JSON_LINES and request.branch:
        raise FieldInvalidError("branch", "must be 0: JSON Lines holds every branch")
    return request.branch or None
