"""Rows to domain objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from annals_common.principal import Scope
from annals_storage.domain.conversations import Conversation, ConversationStatus
from annals_storage.domain.events import Event, EventBody, EventStatus, EventType, Role, Usage
from annals_storage.domain.indexing import IndexableEvent
from annals_storage.domain.ownership import EndUserMode
from annals_storage.domain.signing import SigningAlgorithm, SigningKey
from annals_storage.domain.tenancy import Agent, ApiKey, Tenant

# A page has a thousand of each, and calling an enumeration looks its members up slowly.
_TYPES = {kind.value: kind for kind in EventType}
_STATUSES = {status.value: status for status in EventStatus}
ROLES: dict[str | None, Role | None] = {None: None, **{role.value: role for role in Role}}


def event_from(row: DictRow) -> Event:
    """Map a row that holds every column of the table events."""
    return Event(
        event_id=row["event_id"],
        conversation_id=row["conversation_id"],
        seq=row["seq"],
        body=_body_from(row),
        token_count=row["token_count"],
        event_time=row["event_time"],
        created_at=row["created_at"],
        model=row["model"],
        provider_response_id=row["provider_response_id"],
        usage=Usage(**row["usage"]) if row["usage"] else None,
        parent_event_id=row["parent_event_id"],
        metadata=row["metadata"] or {},
        branch=row["branch"],
        turn_id=row["turn_id"],
        status=_STATUSES[row["status"]],
        version=row["version"],
        edited_at=row["edited_at"],
        deleted_at=row["deleted_at"],
        erased_at=row["erased_at"],
        superseded_by=row["superseded_by"],
        origin_event_id=row["origin_event_id"],
        cold_segment_id=row["cold_segment_id"],
    )


def indexable_from(row: DictRow) -> IndexableEvent:
    """Map a row of get_indexable.sql."""
    return IndexableEvent(
        event=event_from(row),
        deleted=row["deleted"],
        current=row["current"],
        agent_id=row["agent_id"],
        user_id=row["user_id"],
        session_id=row["session_id"],
    )


def _body_from(row: DictRow) -> EventBody:
    return EventBody(
        type=_TYPES[row["type"]],
        role=ROLES[row["role"]],
        content=row["content"],
        author_name=row["author_name"],
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        tool_input=row["tool_input"],
        tool_result=row["tool_result"],
        is_error=row["is_error"],
        error_type=row["error_type"],
        error_message=row["error_message"],
    )


def conversation_from(row: DictRow) -> Conversation:
    """Map a row of get_conversation.sql and its like."""
    values: dict[str, Any] = {name: row[name] for name in Conversation.__slots__}
    return Conversation(**{**values, "status": ConversationStatus(row["status"])})


def tenant_from(row: DictRow) -> Tenant:
    """Map a row of the table tenants."""
    return Tenant(**row)


def agent_from(row: DictRow) -> Agent:
    """Map a row of the table agents."""
    values: dict[str, Any] = {name: row[name] for name in Agent.__slots__}
    return Agent(**{**values, "end_user_mode": EndUserMode(row["end_user_mode"])})


def api_key_from(row: DictRow) -> ApiKey:
    """Map a row of the table api_keys."""
    scopes = frozenset(Scope(scope) for scope in row["scopes"])
    return ApiKey(**{**{name: row[name] for name in ApiKey.__slots__}, "scopes": scopes})


def signing_key_from(row: DictRow) -> SigningKey:
    """Map a row of the table signing_keys."""
    values: dict[str, Any] = {name: row[name] for name in SigningKey.__slots__}
    return SigningKey(**{**values, "algorithm": SigningAlgorithm(row["algorithm"])})


def array_text(numbers: Sequence[int]) -> str:
    """Return whole numbers as PostgreSQL writes an array of them."""
    return "{" + ",".join(map(str, numbers)) + "}"


def uuid_array_text(ids: Iterable[UUID]) -> str:
    """Return ids as PostgreSQL reads an array of them; psycopg looks at each for longer."""
    return "{" + ",".join([f"{one.int:032x}" for one in ids]) + "}"
