"""Searches as they are asked: what goes together, and what does not."""

from __future__ import annotations

from annals.storage.v1 import search_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.validation import enum, require_text, text
from annals_storage.domain.event_search import SearchMode
from annals_storage.domain.events import EventType
from annals_storage.domain.languages import SUPPORTED, language_of
from annals_storage.domain.search import DenseVector, SearchScope
from annals_storage.handlers.enums import SEARCH_MODES

MAX_QUERY_CHARS = 32_768
MAX_LANGUAGE_CHARS = 35
"""What RFC 5646 asks for at least."""
WITH_TOOLS = frozenset({EventType.TOOL_CALL, EventType.TOOL_RESULT})


def query_text(request: pb.SearchEventsRequest, vector: DenseVector | None) -> str:
    """Return the words to look for; empty only beside a vector."""
    if vector is not None and not request.query:
        return ""
    query = require_text(request.query, "query", max_chars=MAX_QUERY_CHARS)
    if not query.strip():
        raise FieldInvalidError("query", "must contain a word", query)
    return query


def search_mode(request: pb.SearchEventsRequest, vector: DenseVector | None) -> SearchMode:
    """Return which signals count: without words, meaning alone."""
    mode = enum(request.mode, SEARCH_MODES, "mode")
    if vector is None:
        return mode
    if mode is SearchMode.LEXICAL:
        raise FieldInvalidError("vector", "must be empty in mode LEXICAL, which compares words")
    return mode if request.query else SearchMode.DENSE


def query_language(tag: str) -> str | None:
    """Return the ISO 639-1 code of a tag; None where the language is to be told."""
    if not tag:
        return None
    language = language_of(text(tag, "language", max_chars=MAX_LANGUAGE_CHARS))
    if language is None:
        raise FieldInvalidError("language", f"must be one of {SUPPORTED}, or empty", tag)
    return language


def check_consistent(scope: SearchScope) -> None:
    """Refuse conditions that no event can meet together."""
    start, end = scope.start_time, scope.end_time
    if start is not None and end is not None and start >= end:
        raise FieldInvalidError(
            "filter.end_time", f"must be after start_time, {start.isoformat()}", end.isoformat()
        )
    if scope.roles and scope.types and EventType.MESSAGE not in scope.types:
        raise FieldInvalidError(
            "filter.roles", "must be empty unless filter.types has MESSAGE: no other has a role"
        )
    if scope.tool_names and scope.types and WITH_TOOLS.isdisjoint(scope.types):
        raise FieldInvalidError(
            "filter.tool_names",
            "must be empty unless filter.types has TOOL_CALL or TOOL_RESULT: no other has a tool",
        )
    if scope.roles and scope.tool_names:
        raise FieldInvalidError(
            "filter.tool_names", "must be empty with filter.roles: no event has a role and a tool"
        )
