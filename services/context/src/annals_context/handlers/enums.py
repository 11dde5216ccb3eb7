"""Enums of the API to enums of the domain and back."""

from __future__ import annotations

from typing import Any

from annals.context.v1 import resources_pb2 as pb
from annals_context.domain.formats.providers import ProviderFormat
from annals_context.domain.model import DetailLevel, PayloadFormat, Section
from annals_context.domain.options import StrategyName

FORMATS: dict[int, PayloadFormat] = {
    pb.PAYLOAD_FORMAT_UNSPECIFIED: PayloadFormat.OPENAI_CHAT,
    pb.PAYLOAD_FORMAT_OPENAI_CHAT: PayloadFormat.OPENAI_CHAT,
    pb.PAYLOAD_FORMAT_TEXT: PayloadFormat.TEXT,
}
PROVIDER_FORMATS: dict[int, ProviderFormat] = {
    pb.PAYLOAD_FORMAT_UNSPECIFIED: ProviderFormat.OPENAI_CHAT,
    pb.PAYLOAD_FORMAT_OPENAI_CHAT: ProviderFormat.OPENAI_CHAT,
    pb.PAYLOAD_FORMAT_TEXT: ProviderFormat.TEXT,
    pb.PAYLOAD_FORMAT_ANTHROPIC_MESSAGES: ProviderFormat.ANTHROPIC_MESSAGES,
    pb.PAYLOAD_FORMAT_GEMINI_CONTENTS: ProviderFormat.GEMINI_CONTENTS,
    pb.PAYLOAD_FORMAT_OPENAI_RESPONSES: ProviderFormat.OPENAI_RESPONSES,
}
STRATEGIES: dict[int, StrategyName | None] = {
    pb.STRATEGY_UNSPECIFIED: None,
    **{pb.Strategy.Value(f"STRATEGY_{name.name}"): name for name in StrategyName},
}


def format_number(value: PayloadFormat) -> Any:
    """Return the API's number."""
    return pb.PayloadFormat.Value(f"PAYLOAD_FORMAT_{value.name}")


def strategy_number(value: StrategyName) -> Any:
    """Return the API's number."""
    return pb.Strategy.Value(f"STRATEGY_{value.name}")


def section_number(value: Section) -> Any:
    """Return the API's number."""
    return pb.Section.Value(f"SECTION_{value.name}")


def detail_number(value: DetailLevel) -> Any:
    """Return the API's number."""
    return pb.DetailLevel.Value(f"DETAIL_LEVEL_{value.name}")
