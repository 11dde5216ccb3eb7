"""What holds for every payload."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from tests.unit.context.provider_checks import check_anthropic, check_gemini, check_responses

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats.compact_json import dumps
from annals_context.domain.formats.lines import indented
from annals_context.domain.formats.rendering import arguments_object
from annals_context.domain.formats.text import CURRENT_HEADING, RECENT_HEADING
from annals_context.domain.formats.turns import EMPTY_TEXT
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


CHECKS: dict[PayloadFormat, Callable[[str], object]] = {
    PayloadFormat.OPENAI_CHAT: check_openai,
    PayloadFormat.TEXT: str,
    PayloadFormat.ANTHROPIC_MESSAGES: check_anthropic,
    PayloadFormat.GEMINI_CONTENTS: check_gemini,
    PayloadFormat.OPENAI_RESPONSES: check_responses,
}
TURNS = {PayloadFormat.ANTHROPIC_MESSAGES, PayloadFormat.GEMINI_CONTENTS}


def check_context(request: ContextRequest, context: PreparedContext) -> None:
    """Check the budget, the ledger and that the items are what the payload holds."""
    available = request.budget_tokens - request.response_reserve_tokens
    assert context.payload.strip()
    assert context.total_tokens == request.counter.count(context.payload)
    assert context.total_tokens <= available - context.counter.margin_tokens
    _check_ledger(context)
    _check_items(request, context)
    _check_pairs(request, context)
    said = CHECKS[context.payload_format](context.payload)
    if isinstance(said, dict):
        said = said.get("messages") or said.get("contents")
    assert said, "providers refuse a request that nobody says anything in"
    if context.payload_format is PayloadFormat.TEXT:
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
            in_turns = item.section is Section.RECENT and context.payload_format in TURNS
            body = _body_in_turns(event) if in_turns else event.body
            assert body in shown or indented(body) in shown or _shares_turn(event, by_seq)
        else:
            assert item.handle in shown


def decoded(context: PreparedContext) -> str:
    """Return the payload as its reader sees it: JSON strings decoded."""
    if context.payload_format is PayloadFormat.TEXT:
        return context.payload
    return "\n".join(_words(json.loads(context.payload)))


def _words(value: object) -> Iterator[str]:
    """Yield every string of a payload; arguments of tools as the JSON they are."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from [dumps(member)] if name in {"input", "args"} else _words(member)


def _body_in_turns(event: Event) -> str:
    """Return the words of an event in a turn, where nothing is blank and arguments are objects."""
    if event.type is EventType.TOOL_CALL:
        return dumps(arguments_object(event.tool_input))
    is_message = event.type is EventType.MESSAGE and event.role is not Role.TOOL
    is_blank = is_message and not (event.author_name or event.content.strip())
    return EMPTY_TEXT if is_blank else event.body


def _shares_turn(event: Event, by_seq: Mapping[int, Event]) -> bool:
    """Whether nothing stands for a blank message: the call after it is in its turn."""
    after = by_seq.get(event.seq + 1)
    calls = after is not None and after.type is EventType.TOOL_CALL
    return calls and event.role is Role.ASSISTANT and not event.content.strip()


def _check_sections(context: PreparedContext) -> None:
    """Check that nobody's text poses as a heading."""
    lines = re.split("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", context.payload)
    sections = {item.section for item in context.items}
    assert lines.count(RECENT_HEADING.strip()) == (Section.RECENT in sections)
    assert lines.count(CURRENT_HEADING.strip()) == (Section.CURRENT in sections)
    numbered = [item for item in context.items if item.section in {Section.RELEVANT, Section.INDEX}]
    assert sum(line.startswith("#") for line in lines) == len(numbered)
