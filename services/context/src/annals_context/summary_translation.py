"""Summaries of storage's API to those of the domain and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from annals.storage.v1 import summary_service_pb2 as pb
from annals_context.domain.material import SummaryLevel
from annals_context.domain.summarising.blocks import Block
from annals_context.domain.summarising.kept import PROVIDER, KeptSummary, MadeSummary, SummaryRun
from annals_context.domain.summarising.pieces import Piece
from annals_context.domain.summarising.writing import ALGORITHM, Citation, Digest

LEVELS: dict[int, SummaryLevel] = {
    pb.SUMMARY_LEVEL_BRIEF: SummaryLevel.BRIEF,
    pb.SUMMARY_LEVEL_STANDARD: SummaryLevel.STANDARD,
    pb.SUMMARY_LEVEL_DETAILED: SummaryLevel.DETAILED,
}
LEVEL_NUMBERS: dict[SummaryLevel, Any] = {value: key for key, value in LEVELS.items()}
MAX_SPEAKER_CHARS = 256
"""What storage takes of a speaker's name."""


def timestamp_of(moment: datetime | None) -> Timestamp | None:
    """Return the message, or None for None."""
    if moment is None:
        return None
    message = Timestamp()
    message.FromDatetime(moment)
    return message


def kept_summary(item: pb.Summary) -> KeptSummary:
    """Return the domain's summary; without citations where none were asked for."""
    citations = tuple(_citation(cited, item.text) for cited in item.citations)
    return KeptSummary(
        block=Block(item.height, item.first_seq, item.last_seq),
        level=LEVELS.get(item.level, SummaryLevel.STANDARD),
        digest=Digest(item.text, item.token_count, citations, item.quality_score),
        summary_id=item.summary_id,
        created_at=item.create_time.ToDatetime(tzinfo=UTC),
    )


def _citation(cited: pb.SummaryCitation, text: str) -> Citation:
    said = text[cited.text_start : cited.text_end]
    piece = Piece(cited.event_id, cited.seq, cited.speaker, cited.date, said)
    return Citation(piece, cited.text_start, cited.text_end)


def citation_message(citation: Citation) -> pb.SummaryCitation:
    """Return the API's citation."""
    return pb.SummaryCitation(
        event_id=citation.piece.event_id,
        seq=citation.piece.seq,
        speaker=citation.piece.speaker[:MAX_SPEAKER_CHARS],
        date=citation.piece.date,
        text_start=citation.text_start,
        text_end=citation.text_end,
    )


def summary_message(made: MadeSummary) -> pb.Summary:
    """Return a summary as PutSummaries takes it."""
    return pb.Summary(
        height=made.block.height,
        level=LEVEL_NUMBERS[made.level],
        first_seq=made.block.first_seq,
        last_seq=made.block.last_seq,
        provider=PROVIDER,
        model=ALGORITHM,
        text=made.digest.text,
        token_count=made.digest.tokens,
        quality_score=made.digest.quality_score,
        citations=[citation_message(citation) for citation in made.digest.citations],
        source_version=made.source_version,
    )


def run_message(run: SummaryRun) -> pb.SummaryRun:
    """Return a run as PutSummaries takes it. Nothing is paid for it."""
    return pb.SummaryRun(
        provider=PROVIDER,
        model=ALGORITHM,
        status=pb.SUMMARY_RUN_STATUS_FAILED if run.error else pb.SUMMARY_RUN_STATUS_COMPLETED,
        summary_count=run.summary_count,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        error=run.error,
        start_time=timestamp_of(run.started_at),
    )
