"""Conversations as files, and into other hands."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.calls import Call, safe_call, single_call
from annals_client.streams import Download, Upload
from annals_client.values import enum_number

TRANSFER_TIMEOUT_S = 3_600.0
PART_BYTES = 512 * 1024


def archive(conversation_id: str, *, timeout: float | None = None) -> Call[res.Conversation]:
    """Put a conversation away: readable and searchable, takes no events."""
    request = pb.ArchiveConversationRequest(conversation_id=conversation_id)
    call = safe_call(lambda stubs: stubs.conversations.ArchiveConversation, request, timeout)
    return call.map(lambda answer: answer.conversation)


def current(
    *,
    user_id: str = "",
    session_id: str = "",
    agent_id: str = "",
    timeout: float | None = None,
) -> Call[res.Conversation]:
    """The newest active conversation of a user or a session."""
    request = pb.GetCurrentConversationRequest(
        user_id=user_id, session_id=session_id, agent_id=agent_id
    )
    call = safe_call(lambda stubs: stubs.conversations.GetCurrentConversation, request, timeout)
    return call.map(lambda answer: answer.conversation)


def fork(
    conversation_id: str,
    event_id: str = "",
    *,
    branch: int = 0,
    new_conversation_id: str = "",
    title: str = "",
    request_id: str | None = None,
    timeout: float | None = None,
) -> Call[pb.ForkConversationResponse]:
    """Copy a branch, up to an event ("": all of it), into a new conversation."""
    request = pb.ForkConversationRequest(
        conversation_id=conversation_id,
        event_id=event_id,
        branch=branch,
        new_conversation_id=new_conversation_id,
        title=title,
        request_id=request_id or str(uuid.uuid4()),
    )
    return safe_call(lambda stubs: stubs.conversations.ForkConversation, request, timeout)


def merge_session(
    session_id: str, user_id: str = "", *, timeout: float | None = None
) -> Call[pb.MergeSessionResponse]:
    """Move the anonymous conversations of a session to a user, each once.

    `user_id` is empty with a publishable key: the signed token names the user.
    """
    request = pb.MergeSessionRequest(session_id=session_id, user_id=user_id)
    return single_call(lambda stubs: stubs.conversations.MergeSession, request, timeout)


def export(
    conversation_id: str,
    *,
    form: int | str = "json-lines",
    branch: int = 0,
    timeout: float = TRANSFER_TIMEOUT_S,
) -> Download:
    """A conversation as the bytes of a file, part by part. `form`: json-lines (whole, to import
    again), json, markdown or csv, of which `branch` is one (0: the current).
    """
    request = pb.ExportConversationRequest(
        conversation_id=conversation_id,
        format=enum_number(pb.ExportFormat, "EXPORT_FORMAT_", form),
        branch=branch,
    )
    return Download(
        lambda stubs: stubs.conversations.ExportConversation,
        request,
        lambda answer: answer.data,
        timeout,
    )


def import_file(
    source: Path | str | Iterable[bytes], *, timeout: float = TRANSFER_TIMEOUT_S
) -> Upload[pb.ImportConversationsResponse]:
    """Store the conversations of a JSON Lines export, all or none; what is there is skipped.

    `source`: a path, or the bytes of the file in parts of any size, which are read once and so
    not sent again after a failure.
    """
    repeatable = isinstance(source, Path | str)
    parts = partial(_parts_of_file, Path(source)) if repeatable else partial(_cut, source)  # type: ignore[arg-type]
    return Upload(
        lambda stubs: stubs.conversations.ImportConversations,
        lambda: (pb.ImportConversationsRequest(data=part) for part in parts()),
        timeout,
        safe=repeatable,
    )


def _parts_of_file(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            yield part


def _cut(parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        for start in range(0, len(part), PART_BYTES):
            yield part[start : start + PART_BYTES]
