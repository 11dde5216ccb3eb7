"""Every format events are translated to, and those they are read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from annals_context.domain.events import Event
from annals_context.domain.formats import (
    anthropic_messages,
    anthropic_parse,
    gemini_contents,
    gemini_parse,
    openai_chat,
    openai_parse,
    openai_responses,
    openai_responses_parse,
    text,
)
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.rendering import Rendered


class ProviderFormat(StrEnum):
    """A form that events are written in."""

    OPENAI_CHAT = "openai_chat"
    TEXT = "text"
    ANTHROPIC_MESSAGES = "anthropic_messages"
    GEMINI_CONTENTS = "gemini_contents"
    OPENAI_RESPONSES = "openai_responses"


def _text(events: Sequence[Event]) -> Rendered:
    return Rendered(text.render(events), ())


RENDERERS: Mapping[ProviderFormat, Callable[[Sequence[Event]], Rendered]] = {
    ProviderFormat.OPENAI_CHAT: openai_chat.render,
    ProviderFormat.TEXT: _text,
    ProviderFormat.ANTHROPIC_MESSAGES: anthropic_messages.render,
    ProviderFormat.GEMINI_CONTENTS: gemini_contents.render,
    ProviderFormat.OPENAI_RESPONSES: openai_responses.render,
}
PARSERS: Mapping[ProviderFormat, Callable[[str], Parsed]] = {
    ProviderFormat.OPENAI_CHAT: openai_parse.parse,
    ProviderFormat.ANTHROPIC_MESSAGES: anthropic_parse.parse,
    ProviderFormat.GEMINI_CONTENTS: gemini_parse.parse,
    ProviderFormat.OPENAI_RESPONSES: openai_responses_parse.parse,
}
"""Text is for reading: nothing is read from it."""
