"""Summaries of parts of conversations, and the runs that made them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from annals_storage.domain.branches import Part

MAX_RUNS = 100
"""Newest runs that are kept of a conversation."""


class SummaryLevel(StrEnum):
    """How much a summary keeps, as stored."""

    BRIEF = "brief"
    STANDARD = "standard"
    DETAILED = "detailed"


class SummaryRunStatus(StrEnum):
    """How the making of summaries went, as stored."""

    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Citation:
    """A sentence of a summary, in characters of its text, and where it was said."""

    event_id: UUID
    seq: int
    speaker: str
    date: str
    text_start: int
    text_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSummary:
    """A validated summary on its way into the store. `source_version`: of what it was made."""

    summary_id: UUID
    height: int
    level: SummaryLevel
    first_seq: int
    last_seq: int
    provider: str
    model: str
    body: str
    token_count: int
    quality_score: float
    citations: tuple[Citation, ...]
    source_version: str

    @property
    def place(self) -> tuple[str, int, str, int]:
        """What it takes the place of on its branch."""
        return self.provider, self.height, self.level.value, self.first_seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A stored summary. `body` is empty and `citations` none where they were not asked for."""

    summary_id: UUID
    conversation_id: UUID
    branch: int
    height: int
    level: SummaryLevel
    first_seq: int
    last_seq: int
    provider: str
    model: str
    token_count: int
    quality_score: float
    source_version: str
    version: int
    created_at: datetime
    body: str = ""
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSummaryRun:
    """A validated run on its way into the store."""

    run_id: UUID
    provider: str
    model: str
    status: SummaryRunStatus
    summary_count: int
    input_tokens: int
    output_tokens: int
    cost_micros: int
    error: str
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRun(NewSummaryRun):
    """A recorded run."""

    conversation_id: UUID
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class SummarySource:
    """What a branch has to summarise. `head_seq` is 0 without an event."""

    branch: int
    head_seq: int
    source_versions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryQuery:
    """A page of what holds for a branch, None: the current one.

    `cursor`: (first_seq, summary_id) of the last row of the previous page.
    """

    conversation_id: UUID
    branch: int | None = None
    levels: tuple[SummaryLevel, ...] = ()
    heights: tuple[int, ...] = ()
    first_seq: int = 0
    last_seq: int | None = None
    provider: str = ""
    with_text: bool = True
    limit: int = 100
    cursor: tuple[int, UUID] | None = None


def owning_branch(view: list[Part], last_seq: int) -> int:
    """Return the first branch of a view, its parts by seq, that shows everything up to an event:
    what is said of it holds for every branch that comes from there.
    """
    return next((part.branch for part in view if part.until_seq >= last_seq), view[-1].branch)
