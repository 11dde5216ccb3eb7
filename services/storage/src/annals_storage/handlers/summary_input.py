"""Summaries of the API to the domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from annals.storage.v1 import summary_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.ids import uuid7
from annals_common.validation import (
    bounded,
    check_count,
    enum,
    long_text,
    require_text,
    require_uuid,
    text,
    timestamp,
)
from annals_storage.domain.summaries import (
    Citation,
    NewSummary,
    NewSummaryRun,
    SummaryLevel,
    SummaryRunStatus,
)

MAX_SUMMARIES = 100
MAX_CITATIONS = 200
MAX_HEIGHT = 9
MAX_TEXT_BYTES = 65_536
MAX_PROVIDER_CHARS = 64
MAX_MODEL_CHARS = 200
MAX_SPEAKER_CHARS = 256
MAX_DATE_CHARS = 10
MAX_VERSION_CHARS = 64
MAX_ERROR_CHARS = 1_000
MAX_SEQ = 2**62
MAX_TOKENS = 2**31 - 1

LEVELS: dict[int, SummaryLevel] = {
    pb.SUMMARY_LEVEL_BRIEF: SummaryLevel.BRIEF,
    pb.SUMMARY_LEVEL_STANDARD: SummaryLevel.STANDARD,
    pb.SUMMARY_LEVEL_DETAILED: SummaryLevel.DETAILED,
}
RUN_STATUSES: dict[int, SummaryRunStatus] = {
    pb.SUMMARY_RUN_STATUS_COMPLETED: SummaryRunStatus.COMPLETED,
    pb.SUMMARY_RUN_STATUS_FAILED: SummaryRunStatus.FAILED,
}


def seq_range(item: Any, path: str) -> tuple[int, int]:
    """Return (first_seq, last_seq). Raises FieldInvalidError."""
    bounded(item.first_seq, f"{path}.first_seq", low=1, high=MAX_SEQ)
    bounded(item.last_seq, f"{path}.last_seq", low=item.first_seq, high=MAX_SEQ)
    return item.first_seq, item.last_seq


def new_summaries(request: pb.PutSummariesRequest) -> list[NewSummary]:
    """Return what is to be stored. Raises FieldInvalidError."""
    check_count(request.summaries, "summaries", max_items=MAX_SUMMARIES)
    summaries = [
        _new_summary(item, f"summaries[{index}]") for index, item in enumerate(request.summaries)
    ]
    _check_distinct(summaries)
    if not summaries and not request.HasField("run"):
        raise FieldInvalidError("summaries", "must not be empty without a run")
    return summaries


def _check_distinct(summaries: Sequence[NewSummary]) -> None:
    places = set()
    for index, new in enumerate(summaries):
        if new.place in places:
            raise FieldInvalidError(
                f"summaries[{index}]", "has provider, height, level and first_seq of another one"
            )
        places.add(new.place)


def _new_summary(item: pb.Summary, path: str) -> NewSummary:
    first_seq, last_seq = seq_range(item, path)
    bounded(item.height, f"{path}.height", low=0, high=MAX_HEIGHT)
    bounded(item.token_count, f"{path}.token_count", low=0, high=MAX_TOKENS)
    bounded(item.quality_score, f"{path}.quality_score", low=0, high=1)
    if not item.text:
        raise FieldInvalidError(f"{path}.text", "is required")
    check_count(item.citations, f"{path}.citations", max_items=MAX_CITATIONS)
    return NewSummary(
        summary_id=uuid7(),
        height=item.height,
        level=enum(item.level, LEVELS, f"{path}.level"),
        first_seq=first_seq,
        last_seq=last_seq,
        provider=require_text(item.provider, f"{path}.provider", max_chars=MAX_PROVIDER_CHARS),
        model=require_text(item.model, f"{path}.model", max_chars=MAX_MODEL_CHARS),
        body=long_text(item.text, f"{path}.text", max_bytes=MAX_TEXT_BYTES),
        token_count=item.token_count,
        quality_score=item.quality_score,
        citations=tuple(
            _citation(cited, item, f"{path}.citations[{index}]")
            for index, cited in enumerate(item.citations)
        ),
        source_version=require_text(
            item.source_version, f"{path}.source_version", max_chars=MAX_VERSION_CHARS
        ),
    )


def _citation(cited: pb.SummaryCitation, of: pb.Summary, path: str) -> Citation:
    bounded(cited.seq, f"{path}.seq", low=of.first_seq, high=of.last_seq)
    bounded(cited.text_end, f"{path}.text_end", low=0, high=len(of.text))
    bounded(cited.text_start, f"{path}.text_start", low=0, high=cited.text_end)
    return Citation(
        event_id=require_uuid(cited.event_id, f"{path}.event_id"),
        seq=cited.seq,
        speaker=text(cited.speaker, f"{path}.speaker", max_chars=MAX_SPEAKER_CHARS),
        date=text(cited.date, f"{path}.date", max_chars=MAX_DATE_CHARS),
        text_start=cited.text_start,
        text_end=cited.text_end,
    )


def new_run(request: pb.PutSummariesRequest) -> NewSummaryRun | None:
    """Return the run to record, if any. Raises FieldInvalidError."""
    if not request.HasField("run"):
        return None
    run = request.run
    status = enum(run.status, RUN_STATUSES, "run.status")
    if status is SummaryRunStatus.FAILED and request.summaries:
        raise FieldInvalidError("summaries", "must be empty with a run that failed")
    bounded(run.summary_count, "run.summary_count", low=0, high=MAX_TOKENS)
    for name in ("input_tokens", "output_tokens", "cost_micros"):
        bounded(getattr(run, name), f"run.{name}", low=0, high=MAX_SEQ)
    if not run.HasField("start_time"):
        raise FieldInvalidError("run.start_time", "is required")
    return NewSummaryRun(
        run_id=uuid7(),
        provider=require_text(run.provider, "run.provider", max_chars=MAX_PROVIDER_CHARS),
        model=require_text(run.model, "run.model", max_chars=MAX_MODEL_CHARS),
        status=status,
        summary_count=run.summary_count,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        cost_micros=run.cost_micros,
        error=text(run.error, "run.error", max_chars=MAX_ERROR_CHARS),
        started_at=timestamp(run.start_time, "run.start_time"),
    )
