"""Requests that change stored events to what the domain makes of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any
from uuid import UUID

from annals.storage.v1 import event_service_pb2 as pb
from annals_common.errors import FieldInvalidError, PageTokenInvalidError
from annals_common.ids import derived_uuid, uuid7
from annals_common.paging import decode_page_token
from annals_common.principal import current_principal
from annals_common.validation import (
    UUID_CHARS,
    bounded,
    check_count,
    optional_uuid,
    page_size,
    plain_text,
    require_uuid,
    text,
)
from annals_storage.domain.changing import EventEdit, HistoryQuery, TurnStore
from annals_storage.handlers.conversation_input import MAX_OWNER_CHARS
from annals_storage.handlers.event_input import (
    MAX_ID_CHARS,
    CountsTokens,
    content_hash,
    event_body,
    event_content,
    idempotency_key,
    new_event,
    said_in,
)

UPDATE_FIELDS = ("body", "model", "provider_response_id", "usage", "metadata", "status")
MAX_UPDATE_FIELDS = 100
MAX_VERSION = 2**31 - 1
_VERSION = re.compile(r"[0-9]{1,10}")


def turn_store(request: pb.StoreTurnRequest, tenant_id: UUID, counter: CountsTokens) -> TurnStore:
    """Return the store of a turn, its conversation found out as far as the request tells."""
    given_id = optional_uuid(request.conversation_id, "conversation_id")
    host_id = text(request.host_conversation_id, "host_conversation_id", max_chars=MAX_ID_CHARS)
    _check_new_conversation(request, given_id)
    agent_id = optional_uuid(request.agent_id, "agent_id")
    session_id = text(request.session_id, "session_id", max_chars=MAX_OWNER_CHARS)
    turn_id = plain_text(request.turn_id, "turn_id", max_chars=MAX_ID_CHARS)
    event = new_event(request.event, counter)
    return TurnStore(
        tenant_id=tenant_id,
        conversation_id=given_id or _new_conversation_id(request, tenant_id),
        turn_id=turn_id,
        event=event,
        payload_hash=content_hash({"turn_id": turn_id, "event": event.payload_hash.hex()}),
        actor=current_principal().actor,
        creates=given_id is None,
        host_id=host_id or None,
        agent_id=agent_id,
        session_id=session_id or None,
    )


def _check_new_conversation(request: pb.StoreTurnRequest, given_id: UUID | None) -> None:
    if given_id is None:
        return
    for name in ("host_conversation_id", "agent_id", "session_id"):
        if value := getattr(request, name):
            raise FieldInvalidError(name, "must be empty together with conversation_id", value)


def _new_conversation_id(request: pb.StoreTurnRequest, tenant_id: UUID) -> UUID:
    """Return the id a retry of this call arrives at again, where something tells that it is one."""
    if request.host_conversation_id:
        return derived_uuid("host conversation", tenant_id.bytes, request.host_conversation_id)
    if key := request.event.idempotency_key:
        owner = (tenant_id.bytes, request.agent_id.lower(), request.session_id)
        return derived_uuid("anonymous turn", *owner, request.turn_id, key)
    return uuid7()


def event_edit(request: pb.EditEventRequest, tenant_id: UUID, counter: CountsTokens) -> EventEdit:
    """Return the edit. Fields that update_fields does not name are checked and left alone."""
    event_id = require_uuid(request.event_id, "event_id")
    names = _update_fields(request)
    bounded(request.expected_version, "expected_version", low=0, high=MAX_VERSION)
    values, said = _edited(request.event, names, counter)
    return EventEdit(
        tenant_id=tenant_id,
        event_id=event_id,
        values=values,
        payload_hash=content_hash({"edited": str(event_id), **said}),
        actor=current_principal().actor,
        idempotency_key=idempotency_key(request.event, "event"),
        expected_version=request.expected_version or None,
    )


def _update_fields(request: pb.EditEventRequest) -> frozenset[str]:
    check_count(request.update_fields, "update_fields", max_items=MAX_UPDATE_FIELDS)
    for i, name in enumerate(request.update_fields):
        if name not in UPDATE_FIELDS:
            options = ", ".join(UPDATE_FIELDS)
            raise FieldInvalidError(f"update_fields[{i}]", f"must be one of {options}", name)
    return frozenset(request.update_fields or ("body",))


def _edited(
    event: pb.NewEvent, names: Collection[str], counter: CountsTokens
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is replaced, by field of the domain's Event, and what of it enters the hash."""
    for name in ("event_id", "parent_event_id"):
        if optional_uuid(getattr(event, name), f"event.{name}"):
            raise FieldInvalidError(
                f"event.{name}", "must be empty: an edit does not change it", getattr(event, name)
            )
    content = event_content(event, "event")
    if event.HasField("event_time"):
        raise FieldInvalidError("event.event_time", "must be absent: an edit does not change it")
    values = {name: value for name, value in content.items() if name in names}
    said = {name: value or None for name, value in values.items()}
    body = event_body(event, "event") if event.WhichOneof("body") else None
    if body is not None and "body" in names:
        [token_count] = counter.count([body.words()])
        values |= {"body": body, "token_count": token_count}
        said["body"] = said_in(body)
    if not values:
        raise FieldInvalidError("event.body", "is required where update_fields name nothing else")
    return values, said


def history_query(request: pb.ListObservationsRequest, tenant_id: UUID) -> HistoryQuery:
    """Return whose history is asked for, and which page of it."""
    event_id = optional_uuid(request.event_id, "event_id")
    conversation_id, turn_id = _turn_key(request.turn_key) if request.turn_key else (None, None)
    if event_id and turn_id:
        raise FieldInvalidError(
            "turn_key", "must be empty together with event_id", request.turn_key
        )
    if not (event_id or turn_id):
        raise FieldInvalidError("event_id", "is required, or turn_key")
    limit = page_size(request.page_size)
    cursor = decode_page_token(request, tenant_id, parts=1)
    return HistoryQuery(
        event_id=event_id,
        conversation_id=conversation_id,
        turn_id=turn_id,
        before_version=_version(cursor[0]) if cursor else MAX_VERSION,
        limit=limit,
    )


def _turn_key(value: str) -> tuple[UUID, str]:
    """Split `conversation_id:turn_id`."""
    text(value, "turn_key", max_chars=UUID_CHARS + 1 + MAX_ID_CHARS)
    conversation_id, colon, turn_id = value.partition(":")
    if not colon:
        raise FieldInvalidError("turn_key", 'must be "conversation_id:turn_id"', value)
    return (
        require_uuid(conversation_id, "turn_key"),
        plain_text(turn_id, "turn_key", max_chars=MAX_ID_CHARS),
    )


def _version(cursor: str) -> int:
    if not _VERSION.fullmatch(cursor) or int(cursor) > MAX_VERSION:
        raise PageTokenInvalidError
    return int(cursor)
