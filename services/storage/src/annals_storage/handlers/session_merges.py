"""ConversationService: merging a session into a user."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import conversation_service_pb2 as pb
from annals_common.errors import UserTokenRequiredError
from annals_common.principal import current_principal
from annals_common.validation import require_text, text
from annals_storage.domain.merging import Merge
from annals_storage.handlers.access import own_data_tenant
from annals_storage.handlers.conversation_input import MAX_OWNER_CHARS
from annals_storage.handlers.output import timestamp_message
from annals_storage.handlers.ownership import refuse_other
from annals_storage.ports.ownership import SessionMergeStore


class SessionMergeHandler:
    """Translates."""

    def __init__(self, merges: SessionMergeStore) -> None:
        self._merges = merges

    async def MergeSession(
        self, request: pb.MergeSessionRequest, context: Any
    ) -> pb.MergeSessionResponse:
        tenant_id = own_data_tenant("MergeSession")
        merge = _merge(request)
        merged = await self._merges.merge(tenant_id, merge)
        return pb.MergeSessionResponse(
            moved_count=merged.moved_count,
            user_id=merge.user_id,
            merge_time=timestamp_message(merged.merged_at),
        )


def _merge(request: pb.MergeSessionRequest) -> Merge:
    principal = current_principal()
    session_id = require_text(request.session_id, "session_id", max_chars=MAX_OWNER_CHARS)
    return Merge(
        session_id=session_id,
        user_id=_user_id(request),
        agent_id=principal.agent_id,
        api_key_id=principal.api_key_id,
    )


def _user_id(request: pb.MergeSessionRequest) -> str:
    """Return into whom. For an end user: themselves, proved, and out of their own session."""
    whom = current_principal().end_user
    if whom is None:
        return require_text(request.user_id, "user_id", max_chars=MAX_OWNER_CHARS)
    given = text(request.user_id, "user_id", max_chars=MAX_OWNER_CHARS)
    refuse_other("session_id", request.session_id, whom.session_id)
    if whom.user_id is None or not whom.verified:
        raise UserTokenRequiredError("MergeSession")
    refuse_other("user_id", given, whom.user_id)
    return whom.user_id
