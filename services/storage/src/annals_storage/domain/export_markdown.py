"""A transcript in Markdown (CommonMark).

What somebody wrote stays in its place: words stand in a quote, every line of them marked; what
tools said stands in a fence longer than any run of backticks in it; names are escaped.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from annals_storage.domain.events import Event, EventType
from annals_storage.domain.export_formats import Values

_LINE_END = re.compile(r"\r\n|\r|\n")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!])")
_BACKTICKS = re.compile(r"`+")
_HTML = re.compile(r"<(?=[A-Za-z/!?])")
_REFERENCE = re.compile(r"^([ \t>*+\-\d.)]{0,100}\[[^\]\r\n]{0,1000}\]):", re.MULTILINE)
MIN_FENCE = 3


class MarkdownWriter:
    """Title, facts, one heading for each event, memories at the end."""

    def __init__(self) -> None:
        self._memories = 0

    def begin(self, conversation: Values, branch: int) -> str:
        """Return title and facts."""
        title = conversation["title"] or f"Conversation {conversation['conversation_id']}"
        facts = {
            "Conversation": conversation["conversation_id"],
            "Agent": conversation.get("agent_id", ""),
            "User": conversation.get("user_id", ""),
            "Session": conversation.get("session_id", ""),
            "Status": conversation["status"],
            "Created": conversation["created_at"],
            "Branch": str(branch),
            "Summary": conversation["end_summary"],
        }
        lines = (f"- {name}: {inline(value)}\n" for name, value in facts.items() if value)
        return f"# {inline(title)}\n\n{''.join(lines)}"

    def event(self, event: Event) -> str:
        """Return a heading and what was said."""
        edited = ", edited" if event.edited_at else ""
        status = "" if event.status == "complete" else f", {event.status}"
        about = f"{_moment(event.event_time)}{edited}{status}"
        return f"\n## {event.seq} · {_speaker(event)} · {about}\n\n{_words(event)}"

    def memory(self, memory: Values) -> str:
        """Return a memory, before the first one their heading."""
        self._memories += 1
        heading = "\n# Memories\n" if self._memories == 1 else ""
        tags = f" · {', '.join(inline(tag) for tag in memory['tags'])}" if memory["tags"] else ""
        when = memory["updated_at"]
        return (
            f"{heading}\n## Memory {self._memories} · {when}{tags}\n\n{quoted(memory['content'])}"
        )

    def end(self) -> str:
        """Return nothing."""
        return ""


def _speaker(event: Event) -> str:
    body = event.body
    match body.type:
        case EventType.MESSAGE:
            name = f"{inline(body.author_name)} " if body.author_name else ""
            return f"{name}({body.role})" if name else str(body.role).capitalize()
        case EventType.TOOL_CALL:
            return f"Tool call {inline(body.tool_name or '')}"
        case EventType.TOOL_RESULT:
            failed = " (failed)" if body.is_error else ""
            return f"Tool result {inline(body.tool_name or '')}{failed}"
        case EventType.SYSTEM:
            return "System"
        case EventType.ERROR:
            return f"Error {inline(body.error_type or '')}"


def _words(event: Event) -> str:
    match event.body.type:
        case EventType.TOOL_CALL:
            return fenced(event.body.tool_input or "", "json")
        case EventType.TOOL_RESULT:
            return fenced(event.body.tool_result or "", "text")
        case _:
            return quoted(event.body.words())


def quoted(text: str) -> str:
    """Return the text as a quote: its Markdown shows, its HTML does not work."""
    safe = _REFERENCE.sub(r"\1\\:", _HTML.sub("&lt;", text))
    return "".join(f"> {line}\n" if line else ">\n" for line in _LINE_END.split(safe))


def fenced(text: str, language: str) -> str:
    """Return the text as a block of code."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(MIN_FENCE, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def inline(text: str) -> str:
    """Return the text on one line and without any meaning in Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _moment(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
