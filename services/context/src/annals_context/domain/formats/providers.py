"""Every format events are translated to, and those they are read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
from annals_context.domain.model import PayloadFormat


def _text(events: Sequence[Event]) -> Rendered:
    return Rendered(text.render(events), ())


RENDERERS: Mapping[PayloadFormat, Callable[[Sequence[Event]], Rendered]] = {
    PayloadFormat.OPENAI_CHAT: openai_chat.render,
    PayloadFormat.TEXT: _text,
    PayloadFormat.ANTHROPIC_MESSAGES: anthropic_messages.render,
    PayloadFormat.GEMINI_CONTENTS: gemini_contents.render,
    PayloadFormat.OPENAI_RESPONSES: openai_responses.render,
}
PARSERS: Mapping[PayloadFormat, Callable[[str], Parsed]] = {
    PayloadFormat.OPENAI_CHAT: openai_parse.parse,
    PayloadFormat.ANTHROPIC_MESSAGES: anthropic_parse.parse,
    PayloadFormat.GEMINI_CONTENTS: gemini_parse.parse,
    PayloadFormat.OPENAI_RESPONSES: openai_responses_parse.parse,
}
"""Text is for reading: nothing is read from it."""
