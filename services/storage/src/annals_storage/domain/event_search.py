"""A search of events as it was asked, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from annals_storage.domain.events import Event
from annals_storage.domain.fusion import Component
from annals_storage.domain.indexing import Backlog
from annals_storage.domain.search import SearchScope


class SearchMode(StrEnum):
    """Which signals count."""

    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"


@dataclass(frozen=True, slots=True)
class Search:
    """A validated search.

    `freshness_seconds`: how long to wait for the mirror; None: not. `expires_at`: when the caller
    stops waiting, by time.monotonic; None: never.
    """

    query: str
    scope: SearchScope
    mode: SearchMode = SearchMode.HYBRID
    limit: int = 10
    min_score: float = 0.0
    freshness_seconds: float | None = None
    explain: bool = False
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One event found. The chunk's offsets are into the event's own words, in characters."""

    event: Event
    score: float
    chunk_start: int
    chunk_end: int
    components: tuple[Component, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first, and how complete they are."""

    hits: tuple[Hit, ...]
    backlog: Backlog
    degraded: tuple[str, ...]
    search_time_ms: float
