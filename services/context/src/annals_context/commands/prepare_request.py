"""What PrepareContext is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from annals_context.domain.model import DetailLevel, PayloadFormat, PreparedContext
from annals_context.domain.options import IndexChoices


@dataclass(frozen=True, slots=True)
class Prepare:
    """A validated request. `branch` 0: the current one. `pins`, `required`: see ContextRequest.

    `choices`: what the request says of the index; the agent's configuration and then the
    defaults say the rest.
    """

    conversation_id: str
    budget_tokens: int
    response_reserve_tokens: int
    query: str
    current_message: str
    model: str
    payload_format: PayloadFormat
    relevant_events: int
    read_your_writes: bool
    branch: int = 0
    choices: IndexChoices = field(default_factory=IndexChoices)
    pins: Mapping[int, DetailLevel] = field(default_factory=dict)
    required: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The context, and what it was made from. `branch`: the one prepared, never 0."""

    context: PreparedContext
    conversation_version: int
    degraded: tuple[str, ...]
    branch: int
