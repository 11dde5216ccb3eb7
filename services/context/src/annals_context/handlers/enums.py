"""Enums of the API to enums of the domain and back."""

from __future__ import annotations

from typing import Any

from annals.context.v1 import context_service_pb2
from annals.context.v1 import resources_pb2 as pb
from annals_context.commands.across import Shared
from annals_context.domain.hit_order import SnippetStrategy
from annals_context.domain.model import DetailLevel, PayloadFormat, Section, StrategyName
from annals_context.domain.reuse import Tier

FORMATS: dict[int, PayloadFormat] = {
    pb.PAYLOAD_FORMAT_UNSPECIFIED: PayloadFormat.OPENAI_CHAT,
    pb.PAYLOAD_FORMAT_OPENAI_CHAT: PayloadFormat.OPENAI_CHAT,
    pb.PAYLOAD_FORMAT_TEXT: PayloadFormat.TEXT,
    pb.PAYLOAD_FORMAT_ANTHROPIC_MESSAGES: PayloadFormat.ANTHROPIC_MESSAGES,
    pb.PAYLOAD_FORMAT_GEMINI_CONTENTS: PayloadFormat.GEMINI_CONTENTS,
    pb.PAYLOAD_FORMAT_OPENAI_RESPONSES: PayloadFormat.OPENAI_RESPONSES,
}
STRATEGIES: dict[int, StrategyName] = {
    pb.STRATEGY_UNSPECIFIED: StrategyName.ADAPTIVE,
    pb.STRATEGY_ADAPTIVE: StrategyName.ADAPTIVE,
    pb.STRATEGY_FULL: StrategyName.FULL,
    pb.STRATEGY_SNIPPET: StrategyName.SNIPPET,
}

SNIPPET_STRATEGIES: dict[int, SnippetStrategy] = {
    pb.SNIPPET_STRATEGY_UNSPECIFIED: SnippetStrategy.MIXED,
    pb.SNIPPET_STRATEGY_RELEVANCE: SnippetStrategy.RELEVANCE,
    pb.SNIPPET_STRATEGY_RECENCY: SnippetStrategy.RECENCY,
    pb.SNIPPET_STRATEGY_MIXED: SnippetStrategy.MIXED,
}
CONVERSATION_SCOPES: dict[int, Shared] = {
    pb.CONVERSATION_SCOPE_UNSPECIFIED: Shared.USER,
    pb.CONVERSATION_SCOPE_USER: Shared.USER,
    pb.CONVERSATION_SCOPE_AGENT: Shared.AGENT,
    pb.CONVERSATION_SCOPE_TENANT: Shared.TENANT,
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


def tier_number(value: Tier) -> Any:
    """Return the API's number."""
    return context_service_pb2.ContextCacheTier.Value(f"CONTEXT_CACHE_TIER_{value.name}")


def detail_number(value: DetailLevel) -> Any:
    """Return the API's number."""
    return pb.DetailLevel.Value(f"DETAIL_LEVEL_{value.name}")
