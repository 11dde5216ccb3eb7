"""The seam for strategies."""

from __future__ import annotations

from typing import Protocol

from annals_context.domain.model import ContextRequest, DetailLevel
from annals_context.domain.options import StrategyName
from annals_context.domain.overview import Overview


class Strategy(Protocol):
    """Says what may become of the events that are neither recent nor relevant."""

    @property
    def name(self) -> StrategyName:
        """Name it in the answer."""
        ...

    @property
    def heading(self) -> str:
        """Head the historical block."""
        ...

    @property
    def index_details(self) -> tuple[DetailLevel, ...]:
        """Levels an index event may have, richest first; none: there is no such event."""
        ...

    @property
    def extends_recent_window(self) -> bool:
        """True when a conversation that fits as a whole is written as one window."""
        ...

    def overview(self, request: ContextRequest) -> Overview:
        """Write what is said of the conversation beside its events, in the payload's order."""
        ...
