"""Conversations of requests to conversations of the domain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from annals.storage.v1 import resources_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.ids import derived_uuid, uuid7
from annals_common.validation import optional_uuid, struct, text
from annals_storage.domain.conversations import NewConversation, host_conversation_uuid

MAX_OWNER_CHARS = 256
MAX_TITLE_CHARS = 500
MAX_METADATA_BYTES = 64 * 1024
MAX_METADATA_FILTER_BYTES = 8 * 1024
MAX_PROVIDER_ID_CHARS = 256
CLIENT_CONTEXT_CHARS = {
    "page_url": 2_048,
    "referrer": 2_048,
    "user_agent": 1_024,
    "locale": 35,
    "timezone": 64,
}


def new_conversation(
    conversation: pb.Conversation, tenant_id: UUID, request_id: UUID | None
) -> NewConversation:
    """Return a validated conversation. Without an id of its own, a retry finds it by request_id."""
    values = {path: CHANGEABLE[path](conversation) for path in CREATABLE}
    refuse_two_owners(values)
    given = optional_uuid(conversation.conversation_id, "conversation.conversation_id")
    host_id = host_conversation_id(
        conversation.host_conversation_id, "conversation.host_conversation_id"
    )
    draft = NewConversation(
        conversation_id=given or _derived_id(tenant_id, host_id, request_id),
        creation_hash=b"",
        host_id=host_id,
        **values,
    )
    return replace(draft, creation_hash=_hash(draft), request_id=request_id)


def refuse_two_owners(values: Mapping[str, Any]) -> None:
    """A conversation belongs to a user or to a session. Raises FieldInvalidError."""
    if values.get("user_id") and values.get("session_id"):
        raise FieldInvalidError(
            "conversation.session_id", "must be empty when user_id is set", values["session_id"]
        )


def host_conversation_id(value: str, field: str) -> str | None:
    """Return the id a host application knows a conversation by; None when it is empty."""
    return text(value, field, max_chars=MAX_OWNER_CHARS) or None


def _derived_id(tenant_id: UUID, host_id: str | None, request_id: UUID | None) -> UUID:
    if host_id is not None:
        return host_conversation_uuid(tenant_id, host_id)
    if request_id is None:
        return uuid7()
    return derived_uuid("conversation", tenant_id.bytes, request_id.bytes)


def _hash(draft: NewConversation) -> bytes:
    # What is left empty stays out, so that a field that is added later changes no hash.
    fields = {name: value for name, value in asdict(draft).items() if name in _HASHED or value}
    encoded = json.dumps(fields, sort_keys=True, default=str)
    return hashlib.sha256(encoded.encode()).digest()[:16]


def _owner(name: str) -> Callable[[pb.Conversation], str | None]:
    def read(conversation: pb.Conversation) -> str | None:
        value: str = getattr(conversation, name)
        return text(value, f"conversation.{name}", max_chars=MAX_OWNER_CHARS) or None

    return read


def _provider_id(name: str) -> Callable[[pb.Conversation], str]:
    def read(conversation: pb.Conversation) -> str:
        value: str = getattr(conversation, name)
        return text(value, f"conversation.{name}", max_chars=MAX_PROVIDER_ID_CHARS)

    return read


def _agent_id(conversation: pb.Conversation) -> UUID | None:
    return optional_uuid(conversation.agent_id, "conversation.agent_id")


def _title(conversation: pb.Conversation) -> str:
    return text(conversation.title, "conversation.title", max_chars=MAX_TITLE_CHARS)


def _metadata(conversation: pb.Conversation) -> dict[str, Any]:
    return struct(conversation.metadata, "conversation.metadata", max_bytes=MAX_METADATA_BYTES)


def _client_context(conversation: pb.Conversation) -> dict[str, Any]:
    given, path = conversation.client_context, "conversation.client_context"
    values: dict[str, Any] = {
        name: text(getattr(given, name), f"{path}.{name}", max_chars=limit)
        for name, limit in CLIENT_CONTEXT_CHARS.items()
    }
    values["custom"] = struct(given.custom, f"{path}.custom", max_bytes=MAX_METADATA_BYTES)
    return {name: value for name, value in values.items() if value}


CHANGEABLE: dict[str, Callable[[pb.Conversation], Any]] = {
    "agent_id": _agent_id,
    "org_id": _owner("org_id"),
    "user_id": _owner("user_id"),
    "session_id": _owner("session_id"),
    "title": _title,
    "provider_conversation_id": _provider_id("provider_conversation_id"),
    "last_response_id": _provider_id("last_response_id"),
    "client_context": _client_context,
    "metadata": _metadata,
}
"""Fields a client may write, `status` aside, with their readers."""
CREATABLE = tuple(name for name in CHANGEABLE if name != "last_response_id")
"""Those of them that a new conversation may have."""
_HASHED = frozenset(
    (
        "conversation_id",
        "creation_hash",
        "request_id",
        "agent_id",
        "user_id",
        "session_id",
        "title",
        "client_context",
        "metadata",
    )
)
"""Fields that were part of the hash from the beginning, empty or not."""
