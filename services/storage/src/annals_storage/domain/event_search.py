"""A search of events as it was asked, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from annals_storage.domain.events import Event
from annals_storage.domain.fusion import Component
from annals_storage.domain.hit_groups import Grouping
from annals_storage.domain.indexing import Backlog
from annals_storage.domain.search import DenseVector, SearchScope


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
    `reference_time`: what "last week" is seen from; None: see commands.asked_times.
    `language`: of the query, see domain/languages.py; None: to be told from its words. `vector`:
    the meaning to look for; None: the query's. The query may be empty then, in mode DENSE.
    `diversity`: 0–1, see domain/diversity.py.
    """

    query: str
    scope: SearchScope
    mode: SearchMode = SearchMode.HYBRID
    limit: int = 10
    min_score: float = 0.0
    freshness_seconds: float | None = None
    explain: bool = False
    reference_time: datetime | None = None
    language: str | None = None
    vector: DenseVector | None = None
    group_by: Grouping = Grouping.EVENT
    diversity: float = 0.0
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One event found. The chunk's offsets are into the event's own words, in characters.

    `group_size`: how many candidates the hit stands for, itself included.
    """

    event: Event
    score: float
    chunk_start: int
    chunk_end: int
    components: tuple[Component, ...]
    chunk_index: int
    group_size: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first, and how complete they are."""

    hits: tuple[Hit, ...]
    backlog: Backlog
    degraded: tuple[str, ...]
    search_time_ms: float
