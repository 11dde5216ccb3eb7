"""The layout of each payload format."""

from __future__ import annotations

from annals_context.domain.formats.context_forms import ANTHROPIC, GEMINI, RESPONSES
from annals_context.domain.formats.layout import Layout
from annals_context.domain.formats.openai_layout import OpenAiLayout
from annals_context.domain.formats.provider_layout import ProviderLayout
from annals_context.domain.formats.text import TextLayout
from annals_context.domain.model import PayloadFormat


def layout_for(payload_format: PayloadFormat, *, snippet_chars: int) -> Layout:
    """Return the layout of a format."""
    match payload_format:
        case PayloadFormat.OPENAI_CHAT:
            return OpenAiLayout(snippet_chars)
        case PayloadFormat.TEXT:
            return TextLayout(snippet_chars)
        case PayloadFormat.ANTHROPIC_MESSAGES:
            return ProviderLayout(snippet_chars, ANTHROPIC)
        case PayloadFormat.GEMINI_CONTENTS:
            return ProviderLayout(snippet_chars, GEMINI)
        case PayloadFormat.OPENAI_RESPONSES:
            return ProviderLayout(snippet_chars, RESPONSES)
