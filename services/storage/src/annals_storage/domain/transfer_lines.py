"""What the lines of an export in JSON Lines, version 1, have; docs/formats.md tells it too."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from annals_storage.domain import transfer_fields as f
from annals_storage.domain import transfer_times as t
from annals_storage.domain.branches import MAX_BRANCHES, OPEN_SEQ
from annals_storage.domain.changing import ObservationKind
from annals_storage.domain.conversations import ConversationStatus
from annals_storage.domain.events import EventStatus, EventType, Role, Usage
from annals_storage.domain.relationships import NodeKind, RelationshipType
from annals_storage.domain.transfer_fields import Field, LineInvalidError

FORMAT = "annals.conversation"
VERSION = 1
MAX_ID_CHARS = 256
MAX_NAME_CHARS = 200
MAX_TITLE_CHARS = 500
MAX_SUMMARY_CHARS = 100_000
MAX_CONTENT_BYTES = 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
MAX_METADATA_BYTES = 64 * 1024
MAX_CLIENT_CONTEXT_BYTES = 160 * 1024
MAX_MEMORY_CHARS = 32_768
MAX_TAGS = 64
MAX_TAG_CHARS = 128
MAX_EMBEDDING_BYTES = 2 * 65_536
MAX_URI_CHARS = 2_048
MAX_MEDIA_TYPE_CHARS = 255
MAX_REQUEST_EVENTS = 1_000
MAX_SEQ = OPEN_SEQ
MAX_VERSION = 10**9
"""Leaves room for the changes to come."""
MAX_SUM_TOKENS = 10**15
CLIENT_CONTEXT_CHARS = {
    "page_url": 2_048,
    "referrer": 2_048,
    "user_agent": 1_024,
    "locale": 35,
    "timezone": 64,
}
_MAX_BRANCH = 2**31 - 1


class Kind(StrEnum):
    """What a line is, in the order of a file; observations stand behind their event."""

    HEADER = "header"
    CONVERSATION = "conversation"
    BRANCH = "branch"
    EVENT = "event"
    OBSERVATION = "observation"
    MEMORY = "memory"
    ATTACHMENT = "attachment"
    RELATIONSHIP = "relationship"
    REQUEST = "request"
    USAGE = "usage"
    END = "end"


Values = Mapping[str, Any]


def _check_usage(value: Any) -> None:
    if set(value) != set(Usage.__slots__):
        raise LineInvalidError(f"must have the members {', '.join(Usage.__slots__)}")
    for item in value.values():
        f.integer("usage").check(item)


def _check_client_context(value: Any) -> None:
    for name, item in value.items():
        if name == "custom":
            f.document(name, max_bytes=MAX_METADATA_BYTES).check(item)
        elif name in CLIENT_CONTEXT_CHARS:
            f.text(name, CLIENT_CONTEXT_CHARS[name], min_chars=1).check(item)
        else:
            raise LineInvalidError(f"has an unknown member {name[:MAX_NAME_CHARS]!r}")


def _check_counts(value: Any) -> None:
    for name, item in value.items():
        if name not in set(Kind):
            raise LineInvalidError(f"counts lines of an unknown kind {name[:MAX_NAME_CHARS]!r}")
        f.integer("lines").check(item)


def check_values(fields: tuple[Field, ...], values: Any) -> None:
    """Judge the members of a line. Raises LineInvalidError."""
    if not isinstance(values, dict):
        raise LineInvalidError("must be an object")
    known = {field.name for field in fields}
    if unknown := sorted(set(values) - known):
        raise LineInvalidError(f"{unknown[0][:MAX_NAME_CHARS]!r} is not known here")
    for field in fields:
        if field.name in values:
            _check(field, values[field.name])
        elif field.required:
            raise LineInvalidError(f"{field.name} is missing")


def _check(field: Field, value: Any) -> None:
    try:
        field.check(value)
    except LineInvalidError as error:
        raise LineInvalidError(f"{field.name} {error}") from error


EVENT_FIELDS = (
    f.uuid("event_id"),
    f.integer("seq", low=1, high=MAX_SEQ),
    f.integer("branch", low=1, high=_MAX_BRANCH),
    f.choice("type", EventType),
    f.choice("role", Role, required=False),
    f.text("author_name", MAX_NAME_CHARS, required=False),
    f.long_text("content", MAX_CONTENT_BYTES, required=False),
    f.text("tool_call_id", MAX_ID_CHARS, required=False),
    f.text("tool_name", MAX_ID_CHARS, required=False),
    f.long_text("tool_input", MAX_CONTENT_BYTES, required=False),
    f.long_text("tool_result", MAX_CONTENT_BYTES, required=False),
    f.flag("is_error"),
    f.text("error_type", MAX_ID_CHARS, required=False),
    f.long_text("error_message", MAX_ERROR_BYTES, required=False),
    f.text("model", MAX_NAME_CHARS, required=False),
    f.text("provider_response_id", MAX_ID_CHARS, required=False),
    f.document("usage", max_bytes=1_000, required=False, check=_check_usage),
    f.uuid("parent_event_id", required=False),
    f.document("metadata", max_bytes=MAX_METADATA_BYTES, required=False),
    f.plain("turn_id", MAX_ID_CHARS),
    f.choice("status", EventStatus),
    f.integer("version", low=1, high=MAX_VERSION),
    f.integer("token_count", high=2**31 - 1),
    t.time("event_time"),
    t.clock("created_at"),
    t.clock("edited_at", required=False),
    t.clock("deleted_at", required=False),
    t.clock("erased_at", required=False),
    f.uuid("superseded_by", required=False),
    f.uuid("origin_event_id", required=False),
)
LINES: dict[Kind, tuple[Field, ...]] = {
    Kind.HEADER: (
        f.choice("format", [FORMAT]),
        f.integer("version", low=VERSION, high=VERSION),
        f.uuid("tenant_id"),
        f.uuid("conversation_id"),
    ),
    Kind.CONVERSATION: (
        f.uuid("conversation_id"),
        f.uuid("agent_id", required=False),
        f.text("user_id", MAX_ID_CHARS, required=False),
        f.text("session_id", MAX_ID_CHARS, required=False),
        f.text("host_id", MAX_ID_CHARS, required=False),
        f.text("org_id", MAX_ID_CHARS, required=False),
        f.text("title", MAX_TITLE_CHARS),
        f.choice("status", ConversationStatus),
        f.document(
            "client_context", max_bytes=MAX_CLIENT_CONTEXT_BYTES, check=_check_client_context
        ),
        f.document("metadata", max_bytes=MAX_METADATA_BYTES),
        f.text("end_summary", MAX_SUMMARY_CHARS),
        f.text("provider_conversation_id", MAX_ID_CHARS),
        f.text("last_response_id", MAX_ID_CHARS),
        f.uuid("request_id", required=False),
        f.digest("creation_hash", f.HASH_BYTES, required=False),
        f.integer("next_seq", low=1, high=MAX_SEQ),
        f.integer("event_count"),
        f.integer("message_count"),
        f.integer("token_count"),
        f.integer("memory_count"),
        f.integer("branch_count", low=1, high=MAX_BRANCHES),
        f.integer("current_branch", low=1, high=_MAX_BRANCH),
        f.integer("version", low=1),
        f.uuid("forked_from_conversation_id", required=False),
        f.uuid("forked_from_event_id", required=False),
        f.integer("forked_from_seq", high=MAX_SEQ, required=False),
        t.clock("created_at"),
        t.clock("updated_at"),
        t.clock("last_event_at", required=False),
        t.clock("active_at"),
        t.clock("ended_at", required=False),
        t.clock("archived_at", required=False),
    ),
    Kind.BRANCH: (
        f.integer("branch", low=2, high=_MAX_BRANCH),
        f.integer("parent_branch", low=1, high=_MAX_BRANCH),
        f.integer("fork_seq", high=MAX_SEQ),
        f.integers("view_branches", max_items=MAX_BRANCHES, high=_MAX_BRANCH),
        f.integers("view_after", max_items=MAX_BRANCHES, high=MAX_SEQ),
        f.integers("view_until", max_items=MAX_BRANCHES, high=MAX_SEQ),
        f.text("display_name", MAX_NAME_CHARS),
        f.uuid("request_id", required=False),
        f.digest("request_hash", f.HASH_BYTES, required=False),
        t.clock("created_at"),
    ),
    Kind.EVENT: EVENT_FIELDS,
    Kind.OBSERVATION: (
        f.uuid("event_id"),
        f.integer("version", low=1, high=MAX_VERSION),
        f.choice("kind", ObservationKind),
        f.text("idempotency_key", MAX_ID_CHARS, required=False),
        f.digest("payload_hash", 0, f.HASH_BYTES),
        f.uuid("api_key_id", required=False),
        f.text("user_id", MAX_ID_CHARS, required=False),
        f.text("session_id", MAX_ID_CHARS, required=False),
        t.clock("created_at"),
        Field("payload", lambda value: check_values(EVENT_FIELDS, value), required=False),
    ),
    Kind.MEMORY: (
        f.uuid("memory_id"),
        f.text("content", MAX_MEMORY_CHARS, min_chars=1),
        f.texts("tags", max_items=MAX_TAGS, max_chars=MAX_TAG_CHARS),
        f.document("metadata", max_bytes=MAX_METADATA_BYTES),
        f.flag("caller_embedding"),
        f.binary("embedding", max_bytes=MAX_EMBEDDING_BYTES, required=False),
        f.text("embedding_model", MAX_NAME_CHARS, required=False),
        f.text("idempotency_key", MAX_ID_CHARS, required=False),
        f.digest("payload_hash", f.HASH_BYTES),
        f.integer("version", low=1, high=MAX_VERSION),
        t.clock("created_at"),
        t.clock("updated_at"),
    ),
    Kind.ATTACHMENT: (
        f.uuid("attachment_id"),
        f.text("uri", MAX_URI_CHARS, min_chars=1),
        f.text("media_type", MAX_MEDIA_TYPE_CHARS),
        f.text("file_name", MAX_TITLE_CHARS),
        f.integer("size_bytes", high=2**62),
        f.digits("sha256", f.SHA256_BYTES),
        f.document("metadata", max_bytes=MAX_METADATA_BYTES),
        t.clock("created_at"),
    ),
    Kind.RELATIONSHIP: (
        f.uuid("relationship_id"),
        f.choice("type", RelationshipType),
        f.choice("source_kind", NodeKind),
        f.text("source_id", MAX_URI_CHARS, min_chars=1),
        f.choice("target_kind", NodeKind),
        f.text("target_id", MAX_URI_CHARS, min_chars=1),
        f.fraction("score", required=False),
        f.document("metadata", max_bytes=MAX_METADATA_BYTES),
        t.clock("created_at"),
    ),
    Kind.REQUEST: (
        f.uuid("request_id"),
        f.digest("payload_hash", f.HASH_BYTES),
        f.uuids("event_ids", max_items=MAX_REQUEST_EVENTS),
        t.clock("created_at"),
    ),
    Kind.USAGE: (
        t.day("day"),
        f.text("model", MAX_NAME_CHARS),
        f.integer("event_count", low=1),
        f.integer("input_tokens", high=MAX_SUM_TOKENS),
        f.integer("output_tokens", high=MAX_SUM_TOKENS),
        f.integer("cached_input_tokens", high=MAX_SUM_TOKENS),
    ),
    Kind.END: (
        f.document("lines", max_bytes=1_000, check=_check_counts),
        f.digest("sha256", f.SHA256_BYTES, required=False),
    ),
}
