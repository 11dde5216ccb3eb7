"""Events as lines of text: who speaks, what was said, and the handle to ask for more.

Every line break inside an event's text is followed by one space, which costs next to nothing
in tokens, so that no event can begin a line that looks like a heading or like another event.
"""

from __future__ import annotations

import re

from annals_context.domain.events import Event, EventType
from annals_context.domain.model import DetailLevel
from annals_context.domain.snippets import snippet

NO_MESSAGES = "No messages yet."
_LINE_BREAK = re.compile("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])")
_LABEL_UNSAFE = re.compile(r"[\[\]\s\x00-\x1f]+")
_RETRIEVAL = 'get_message_by_id("{}")'


def indented(text: str) -> str:
    """Return the text with every line but the first indented by one space."""
    return text if text.isprintable() else _LINE_BREAK.sub(r"\1 ", text)


def speaker(event: Event) -> str:
    """Return who acts, in as few words as will do."""
    match event.type:
        case EventType.TOOL_CALL:
            return f"assistant calls {_label(event.tool_name)}"
        case EventType.TOOL_RESULT:
            return f"{_label(event.tool_name)} {'fails' if event.is_error else 'returns'}"
        case EventType.ERROR:
            return f"error {_label(event.error_type)}"
        case EventType.MESSAGE if event.role:
            return _label(event.author_name) or event.role.value
        case _:
            return EventType.SYSTEM.value


def speaker_with_role(event: Event) -> str:
    """Return who acts; a name is followed by the role."""
    name = _label(event.author_name)
    if event.type is EventType.MESSAGE and event.role and name:
        return f"{name} ({event.role.value})"
    return speaker(event)


def words(event: Event, detail: DetailLevel, *, snippet_chars: int, start: int = 0) -> str:
    """Return what is shown of an event beside its handle; a snippet is in quotes."""
    match detail:
        case DetailLevel.FULL:
            return indented(event.body)
        case DetailLevel.SNIPPET:
            return f'"{snippet(event.body, max_chars=snippet_chars, start=start)}"'
        case DetailLevel.STUB:
            return ""


def numbered_line(
    event: Event, detail: DetailLevel, *, snippet_chars: int, start: int = 0, date: str = ""
) -> str:
    """Return a line such as `41 [2024-10-15] user: "…"`, which the caller puts after a "#"."""
    dated = f"{event.seq} [{date}]" if date else str(event.seq)
    if detail is DetailLevel.STUB:
        return dated
    shown = words(event, detail, snippet_chars=snippet_chars, start=start)
    return f"{dated} {speaker(event)}: {shown}"


def retrieval(handle: str) -> str:
    """Return the call that returns every word of an event; empty without a handle."""
    return _RETRIEVAL.format(handle) if handle else ""


def _label(name: str) -> str:
    return name if name.isalnum() else _LABEL_UNSAFE.sub(" ", name).strip()
