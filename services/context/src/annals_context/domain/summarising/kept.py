"""Summaries as they are kept, and what is known of what they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from annals_context.domain.material import Summary, SummaryLevel
from annals_context.domain.summarising.blocks import Block
from annals_context.domain.summarising.writing import Digest

PROVIDER = "extractive"


@dataclass(frozen=True, slots=True)
class SummarySource:
    """What a branch, never 0, has to summarise. `head_seq` is 0 without an event; `versions`:
    one of each block asked for, which changes with what is in view of it.
    """

    branch: int
    head_seq: int
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MadeSummary:
    """A summary on its way to where it is kept."""

    block: Block
    level: SummaryLevel
    digest: Digest
    source_version: str


@dataclass(frozen=True, slots=True)
class KeptSummary:
    """A summary that holds. `summary_id` is empty when it could not be kept."""

    block: Block
    level: SummaryLevel
    digest: Digest
    summary_id: str = ""
    created_at: datetime | None = None

    def material(self, now: datetime) -> Summary:
        """Return what a context is built from."""
        return Summary(
            summary_id=self.summary_id,
            level=self.level,
            text=self.digest.text,
            first_seq=self.block.first_seq,
            last_seq=self.block.last_seq,
            created_at=self.created_at or now,
            quality_score=self.digest.quality_score,
        )


@dataclass(frozen=True, slots=True)
class SummaryRun:
    """One making of summaries and what it took. `error` is empty when nothing went wrong."""

    started_at: datetime
    summary_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `start` on and before `end`; None: open."""

    start: datetime | None = None
    end: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it says nothing."""
        return self.start is None and self.end is None


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """Where a search found something. `score` is between 0 and 1."""

    conversation_id: str
    seq: int
    score: float
