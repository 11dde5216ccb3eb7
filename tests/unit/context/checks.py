"""What holds for every payload."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from annals_context.domain.formats.lines import indented
from annals_context.domain.formats.text import CURRENT_HEADING, RECENT_HEADING
from annals_context.domain.model import (
    ContextRequest,
    DetailLevel,
    PayloadFormat,
    PreparedContext,
    Section,
)
from annals_context.domain.pairing import group_units

ROLES = {"system", "developer", "user", "assistant", "tool"}


def check_openai(payload: str) -> list[dict]:
    """Check what the chat API requires of `messages`, and return them."""
    messages = json.loads(payload)
    assert isinstance(messages, list)
    assert messages
    awaited: set[str] = set()
    for message in messages:
        assert message["role"] in ROLES
        awaited = _check_tools(message, awaited)
    assert not awaited, f"calls without results: {awaited}"
    return messages


def _check_tools(message: dict, awaited: set[str]) -> set[str]:
    if message["role"] == "tool":
        assert message["tool_call_id"] in awaited, "a result that follows no call"
        return awaited - {message["tool_call_id"]}
    assert not awaited, f"calls without results: {awaited}"
    calls = message.get("tool_calls", [])
    assert calls or isinstance(message["content"], str | list)
    for call in calls:
        json.loads(call["function"]["arguments"])
    ids = [call["id"] for call in calls]
    assert len(ids) == len(set(ids)), "two calls share an id"
    return set(ids)


def check_context(request: ContextRequest, context: PreparedContext) -> None:
    """Check the budget, the ledger and that the items are what the payload holds."""
    available = request.budget_tokens - request.response_reserve_tokens
    assert context.payload.strip()
    assert context.total_tokens == request.counter.count(context.payload)
    assert context.total_tokens <= available - context.counter.margin_tokens
    _check_ledger(context)
    _check_items(request, context)
    _check_pairs(request, context)
    if context.payload_format is PayloadFormat.OPENAI_CHAT:
        check_openai(context.payload)
    else:
        _check_sections(context)


def _check_pairs(request: ContextRequest, context: PreparedContext) -> None:
    """Check that calls and results that belong together are there together or not at all."""
    found = [hit.event for hit in request.relevant]
    by_seq = {event.seq: event for event in (*request.others, *found, *request.recent)}
    shown = {item.seq for item in context.items}
    for unit in group_units(by_seq[seq] for seq in sorted(by_seq)):
        seqs = {event.seq for event in (*unit.calls, *(result for _, result in unit.results))}
        assert not seqs & shown or seqs <= shown, "a pair was split"


def _check_ledger(context: PreparedContext) -> None:
    assert sum(entry.tokens for entry in context.ledger) == context.total_tokens
    assert all(entry.tokens >= 0 for entry in context.ledger)
    for entry in context.ledger:
        own = [item for item in context.items if item.section is entry.section]
        counts = (entry.full_count, entry.snippet_count, entry.stub_count)
        assert counts == tuple(sum(i.detail is detail for i in own) for detail in DetailLevel)
        if entry.section is not Section.FRAMING:
            assert entry.tokens == sum(item.tokens for item in own)


def _check_items(request: ContextRequest, context: PreparedContext) -> None:
    stored = [item for item in context.items if item.seq]
    assert len({item.seq for item in stored}) == len(stored), "an event appears twice"
    assert context.omitted_events == request.total_events - len(stored)
    historical = [i.seq for i in stored if i.section in {Section.RELEVANT, Section.INDEX}]
    assert all(before < after for before, after in pairwise(historical))
    shown = decoded(context)
    by_seq = {event.seq: event for event in (*request.recent, *request.others)}
    by_seq |= {hit.event.seq: hit.event for hit in request.relevant}
    for item in stored:
        event = by_seq[item.seq]
        assert item.event_id == event.event_id
        assert item.handle == f"#{item.seq}"
        if item.detail is DetailLevel.FULL:
            assert event.body in shown or indented(event.body) in shown
        else:
            assert item.handle in shown


def decoded(context: PreparedContext) -> str:
    """Return the payload as its reader sees it: JSON strings decoded."""
    if context.payload_format is PayloadFormat.TEXT:
        return context.payload
    parts = []
    for message in json.loads(context.payload):
        parts.append(str(message["content"]))
        parts += [call["function"]["arguments"] for call in message.get("tool_calls", [])]
    return "\n".join(parts)


def _check_sections(context: PreparedContext) -> None:
    """Check that nobody's text poses as a heading."""
    lines = re.split("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", context.payload)
    sections = {item.section for item in context.items}
    assert lines.count(RECENT_HEADING.strip()) == (Section.RECENT in sections)
    assert lines.count(CURRENT_HEADING.strip()) == (Section.CURRENT in sections)
    numbered = [item for item in context.items if item.section in {Section.RELEVANT, Section.INDEX}]
    assert sum(line.startswith("#") for line in lines) == len(numbered)
