"""What a context is asked for and what it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from annals_context.domain.counting import Counter
from annals_context.domain.events import Event


class PayloadFormat(StrEnum):
    """A form that events and contexts are written in."""

    OPENAI_CHAT = "openai_chat"
    TEXT = "text"
    ANTHROPIC_MESSAGES = "anthropic_messages"
    GEMINI_CONTENTS = "gemini_contents"
    OPENAI_RESPONSES = "openai_responses"


class StrategyName(StrEnum):
    """How a context is chosen."""

    ADAPTIVE = "adaptive"
    FULL = "full"
    SNIPPET = "snippet"


class Section(StrEnum):
    """A part of a context."""

    SYSTEM = "system"
    RELEVANT = "relevant"
    INDEX = "index"
    RECENT = "recent"
    CURRENT = "current"
    FRAMING = "framing"


class DetailLevel(StrEnum):
    """How much of an event is there."""

    FULL = "full"
    SNIPPET = "snippet"
    STUB = "stub"


@dataclass(frozen=True, slots=True)
class Hit:
    """An event the search found; the best chunk is `chunk_start` to `chunk_end` of its own words,
    in characters.
    """

    event: Event
    score: float
    chunk_start: int = 0
    chunk_end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """All that a context is built from; the same request gives the same bytes.

    `recent` is the newest window, `relevant` what the search found, `others` further events of
    the conversation; an event may be in several of them. `total_events` counts the whole
    conversation. `budget_tokens` includes `response_reserve_tokens`. `pins` are levels by seq, see
    `pins`; those of `required` must be there in full.
    """

    counter: Counter
    budget_tokens: int
    total_events: int
    recent: Sequence[Event] = ()
    relevant: Sequence[Hit] = ()
    others: Sequence[Event] = ()
    response_reserve_tokens: int = 0
    system_prompt: str = ""
    current_message: str = ""
    payload_format: PayloadFormat = PayloadFormat.OPENAI_CHAT
    strategy: StrategyName = StrategyName.ADAPTIVE
    snippet_chars: int = 100
    include_tool_calls: bool = True
    pins: Mapping[int, DetailLevel] = field(default_factory=dict)
    required: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Repair:
    """Something mended for the target format.

    `kind` is one of those of the API's message Repair, such as "tool_result_missing".
    """

    kind: str
    tool_call_id: str
    event_id: str = ""


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One event in a context; `event_id` is empty and `seq` 0 when it is not stored."""

    event_id: str
    seq: int
    section: Section
    detail: DetailLevel
    tokens: int
    score: float = 0.0
    handle: str = ""
    retrieve_with: str = ""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Tokens of one section and how many items it holds at each level."""

    section: Section
    tokens: int
    full_count: int = 0
    snippet_count: int = 0
    stub_count: int = 0


@dataclass(frozen=True, slots=True)
class CounterInfo:
    """How tokens were counted; `margin_tokens` of the budget were kept free."""

    encoding: str
    exact: bool
    margin_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedContext:
    """A context. `total_tokens` is the count of `payload`; the ledger adds up to it."""

    payload: str
    payload_format: PayloadFormat
    total_tokens: int
    counter: CounterInfo
    ledger: tuple[LedgerEntry, ...]
    items: tuple[ContextItem, ...]
    omitted_events: int
    strategy: StrategyName
    context_version: str
    repairs: tuple[Repair, ...]
