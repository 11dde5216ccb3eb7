"""ConversationService: forks."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from uuid import UUID

from annals.storage.v1 import conversation_service_pb2 as pb
from annals_common.ids import derived_uuid, uuid7
from annals_common.principal import current_principal
from annals_common.validation import bounded, optional_uuid, require_uuid, text
from annals_storage.commands.forking import ForkConversation
from annals_storage.domain.forks import NewFork
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.conversation_input import MAX_TITLE_CHARS
from annals_storage.handlers.event_queries import MAX_BRANCH
from annals_storage.handlers.output import conversation_message


class ForkHandler:
    """Translates; the use case is commands.forking."""

    def __init__(self, fork: ForkConversation) -> None:
        self._fork = fork

    async def ForkConversation(
        self, request: pb.ForkConversationRequest, context: Any
    ) -> pb.ForkConversationResponse:
        tenant_id = data_tenant("ForkConversation")
        made = await self._fork(tenant_id, _new_fork(request, tenant_id))
        return pb.ForkConversationResponse(
            conversation=conversation_message(made.conversation), event_count=made.event_count
        )


def _new_fork(request: pb.ForkConversationRequest, tenant_id: UUID) -> NewFork:
    bounded(request.branch, "branch", low=0, high=MAX_BRANCH)
    conversation_id = require_uuid(request.conversation_id, "conversation_id")
    request_id = optional_uuid(request.request_id, "request_id")
    chosen_id = optional_uuid(request.new_conversation_id, "new_conversation_id")
    said: dict[str, Any] = {
        "event_id": optional_uuid(request.event_id, "event_id"),
        "branch": request.branch or None,
        "title": text(request.title, "title", max_chars=MAX_TITLE_CHARS) or None,
    }
    return NewFork(
        conversation_id=conversation_id,
        new_conversation_id=chosen_id or _fork_id(tenant_id, conversation_id, request_id),
        request_id=request_id,
        request_hash=_hash({**said, "new_conversation_id": chosen_id}),
        actor=current_principal().actor,
        **said,
    )


def _fork_id(tenant_id: UUID, conversation_id: UUID, request_id: UUID | None) -> UUID:
    if request_id is None:
        return uuid7()
    return derived_uuid("fork", tenant_id.bytes, conversation_id.bytes, request_id.bytes)


def _hash(said: dict[str, Any]) -> bytes:
    encoded = json.dumps(said, sort_keys=True, default=str)
    return hashlib.sha256(encoded.encode()).digest()[:16]
