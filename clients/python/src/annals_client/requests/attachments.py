"""References to bytes kept elsewhere."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from annals.storage.v1 import relationship_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call
from annals_client.values import struct


def create(
    conversation_id: str,
    uri: str,
    *,
    event_id: str = "",
    media_type: str = "",
    file_name: str = "",
    size_bytes: int = 0,
    sha256: str = "",
    metadata: Mapping[str, Any] | None = None,
    attachment_id: str = "",
    timeout: float | None = None,
) -> Call[pb.Attachment]:
    """Register an attachment, embedded by `event_id` when given. An id is made up when absent
    and kept over retries.
    """
    attachment = pb.Attachment(
        attachment_id=attachment_id or str(uuid.uuid4()),
        conversation_id=conversation_id,
        uri=uri,
        media_type=media_type,
        file_name=file_name,
        size_bytes=size_bytes,
        sha256=sha256,
        metadata=struct(metadata),
    )
    request = pb.CreateAttachmentRequest(attachment=attachment, event_id=event_id)
    call = safe_call(lambda stubs: stubs.relationships.CreateAttachment, request, timeout)
    return call.map(lambda answer: answer.attachment)


def get(attachment_id: str, *, timeout: float | None = None) -> Call[pb.Attachment]:
    """Read one attachment."""
    request = pb.GetAttachmentRequest(attachment_id=attachment_id)
    call = safe_call(lambda stubs: stubs.relationships.GetAttachment, request, timeout)
    return call.map(lambda answer: answer.attachment)


def list_all(
    conversation_id: str,
    *,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.Attachment]:
    """Attachments of a conversation, newest first."""
    request = pb.ListAttachmentsRequest(conversation_id=conversation_id, page_size=page_size)
    call = safe_call(lambda stubs: stubs.relationships.ListAttachments, request, timeout)
    return Pages(call, lambda answer: answer.attachments, limit)
