"""What a provider's message holds beyond a canonical event, kept in the event's metadata.

`metadata["openai_chat"]` is a JSON text (so that numbers survive any store) of an object:

- "message": members of the message that have no place in the event, such as `refusal`, and
  `content` where it was not a string: an array of parts, or null;
- "call": members of the entry of `tool_calls`, and its `id` where that had to be made unique;
- "begins_message": true on a tool call that began a message of its own although the event
  before it is the assistant's too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from annals_context.domain.events import Event
from annals_context.domain.formats import provider_metadata

PARTS_SEPARATOR = "\n"
_KEY = provider_metadata.OPENAI_CHAT
_PROTECTED_MESSAGE_MEMBERS = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_PROTECTED_CALL_MEMBERS = frozenset({"id", "function"})


def message_extras(event: Event) -> Mapping[str, object]:
    """Return the members of the message beyond the event; empty when there are none."""
    return provider_metadata.members(event, _KEY, "message", ())


def call_extras(event: Event) -> Mapping[str, object]:
    """Return the members of the `tool_calls` entry beyond the event."""
    return provider_metadata.members(event, _KEY, "call", ())


def begins_message(event: Event) -> bool:
    """Tell whether a tool call began a message of its own."""
    return provider_metadata.load(event, _KEY).get("begins_message") is True


class Restorer(Protocol):
    """Decides what of the kept members goes into a payload."""

    def message(self, message: dict[str, object], event: Event) -> None:
        """Complete a message."""
        ...

    def call(self, entry: dict[str, object], event: Event) -> None:
        """Complete an entry of `tool_calls`."""
        ...

    def call_id(self, event: Event) -> str:
        """Return the id a tool call has in the payload."""
        ...


class ContentRestorer:
    """For a model to read: parts such as images come back, bookkeeping does not."""

    def message(self, message: dict[str, object], event: Event) -> None:
        """Give a message its parts and its role back, unless the text was edited since."""
        kept = message_extras(event)
        if kept.get("role") == "developer" and message["role"] == "system":
            message["role"] = "developer"
        if "content" in kept and joined_text(kept["content"]) == (message.get("content") or ""):
            message["content"] = kept["content"]

    def call(self, entry: dict[str, object], event: Event) -> None:
        """Leave the entry as it is."""

    def call_id(self, event: Event) -> str:
        """Return the canonical id, unique in its conversation."""
        return event.tool_call_id


class ExactRestorer(ContentRestorer):
    """For a round trip: every member the original had comes back."""

    def message(self, message: dict[str, object], event: Event) -> None:
        """Give a message every member back."""
        super().message(message, event)
        but = _PROTECTED_MESSAGE_MEMBERS
        message.update(provider_metadata.members(event, _KEY, "message", but))

    def call(self, entry: dict[str, object], event: Event) -> None:
        """Give an entry of `tool_calls` every member back."""
        entry.update(provider_metadata.members(event, _KEY, "call", _PROTECTED_CALL_MEMBERS))

    def call_id(self, event: Event) -> str:
        """Return the id the original had."""
        original = call_extras(event).get("id")
        return original if isinstance(original, str) else event.tool_call_id


def joined_text(content: object) -> str | None:
    """Return the text of a `content`: "" for null, the text parts of an array by lines."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return None
    texts = [part.get("text") for part in content if _is_text_part(part)]
    return PARTS_SEPARATOR.join(text for text in texts if isinstance(text, str))


def _is_text_part(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text"
