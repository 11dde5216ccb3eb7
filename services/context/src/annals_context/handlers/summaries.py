"""ContextService's summaries, and SummarizationService."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from annals.context.v1 import context_summary_pb2 as summary_pb
from annals.context.v1 import summarization_service_pb2 as pb
from annals.context.v1 import summarization_service_pb2_grpc as pb_grpc
from annals.storage.v1 import summary_service_pb2 as storage_pb
from annals_common.errors import FieldInvalidError
from annals_common.validation import (
    bounded,
    check_count,
    check_response_size,
    enum,
    require_text,
    require_uuid,
    text,
    timestamp,
    uuids,
)
from annals_context.commands.context_summary import (
    AskedSummary,
    ContextSummary,
    GetContextSummary,
)
from annals_context.commands.preparing import MAX_QUERY_CHARS
from annals_context.commands.summarize import AskedPart, Summarize, Summarized
from annals_context.domain.material import SummaryLevel
from annals_context.domain.model import CounterInfo
from annals_context.domain.summarising.answering import Candidate
from annals_context.domain.summarising.kept import PROVIDER, TimeRange
from annals_context.domain.summarising.writing import ALGORITHM
from annals_context.handlers.access import current_caller
from annals_context.handlers.context import MAX_BRANCH, MAX_BUDGET_TOKENS, MAX_MODEL_CHARS
from annals_context.handlers.output import counter_message
from annals_context.summary_translation import LEVEL_NUMBERS, LEVELS, citation_message

DEFAULT_MAX_TOKENS = 2_000
MAX_CONVERSATIONS = 20
MAX_EVENT_IDS = 1_000
MAX_FOCUS_TOPICS = 20
MAX_TOPIC_CHARS = 200
MAX_SUMMARY_TOKENS = 100_000
MAX_SEQ = 2**62
ASKED_LEVELS: dict[int, SummaryLevel] = {
    storage_pb.SUMMARY_LEVEL_UNSPECIFIED: SummaryLevel.STANDARD,
    **LEVELS,
}


class ContextSummaryHandler:
    """Translates; the use case is commands.context_summary."""

    def __init__(self, get_summary: GetContextSummary) -> None:
        self._get_summary = get_summary

    async def GetContextSummary(
        self, request: summary_pb.GetContextSummaryRequest, context: Any
    ) -> summary_pb.GetContextSummaryResponse:
        made = await self._get_summary(current_caller(context), _asked_summary(request))
        response = _summary_response(made)
        check_response_size(response, "max_tokens")
        return response


class SummarizationHandler(pb_grpc.SummarizationServiceServicer):
    """Translates; the use case is commands.summarize."""

    def __init__(self, summarize: Summarize) -> None:
        self._summarize = summarize

    async def Summarize(self, request: pb.SummarizeRequest, context: Any) -> pb.SummarizeResponse:
        asked = _asked_part(request)
        return _summarize_response(asked, await self._summarize(current_caller(context), asked))


def _asked_summary(request: summary_pb.GetContextSummaryRequest) -> AskedSummary:
    bounded(request.max_tokens, "max_tokens", low=0, high=MAX_BUDGET_TOKENS)
    query = require_text(request.query, "query", max_chars=MAX_QUERY_CHARS)
    if not query.strip():
        raise FieldInvalidError("query", "must not be blank")
    named = uuids(request.conversation_ids, "conversation_ids", max_items=MAX_CONVERSATIONS)
    return AskedSummary(
        query=query,
        conversation_ids=tuple(dict.fromkeys(map(str, named))),
        when=_time_range(request),
        max_tokens=request.max_tokens or DEFAULT_MAX_TOKENS,
        level=enum(request.level, ASKED_LEVELS, "level"),
        model=text(request.model, "model", max_chars=MAX_MODEL_CHARS),
    )


def _time_range(request: Any) -> TimeRange:
    if not request.HasField("time_range"):
        return TimeRange()
    start, end = _moment(request.time_range, "start"), _moment(request.time_range, "end")
    if start is None and end is None:
        raise FieldInvalidError("time_range", "must have a start or an end")
    if start is not None and end is not None and end <= start:
        raise FieldInvalidError("time_range.end", "must be after time_range.start", end.isoformat())
    return TimeRange(start, end)


def _moment(time_range: summary_pb.SummaryTimeRange, name: Any) -> datetime | None:
    if not time_range.HasField(name):
        return None
    return timestamp(getattr(time_range, name), f"time_range.{name}")


def _asked_part(request: pb.SummarizeRequest) -> AskedPart:
    bounded(request.branch, "branch", low=0, high=MAX_BRANCH)
    bounded(request.max_tokens, "max_tokens", low=0, high=MAX_SUMMARY_TOKENS)
    if request.provider not in ("", PROVIDER):
        raise FieldInvalidError("provider", f'must be "{PROVIDER}" or empty', request.provider)
    named = uuids(request.event_ids, "event_ids", max_items=MAX_EVENT_IDS)
    when = _time_range(request)
    _check_one_part(request)
    return AskedPart(
        conversation_id=str(require_uuid(request.conversation_id, "conversation_id")),
        branch=request.branch,
        first_seq=request.first_seq,
        last_seq=request.last_seq or None,
        event_ids=tuple(dict.fromkeys(map(str, named))),
        when=when,
        level=enum(request.level, ASKED_LEVELS, "level"),
        focus=_focus(request.focus_topics),
        max_tokens=request.max_tokens or None,
        model=text(request.model, "model", max_chars=MAX_MODEL_CHARS),
    )


def _check_one_part(request: pb.SummarizeRequest) -> None:
    bounded(request.first_seq, "first_seq", low=0, high=MAX_SEQ)
    if request.last_seq:
        bounded(request.last_seq, "last_seq", low=max(1, request.first_seq), high=MAX_SEQ)
    has_range = bool(request.first_seq or request.last_seq)
    if request.event_ids and (has_range or request.HasField("time_range")):
        raise FieldInvalidError("event_ids", "must be empty with a range or a time_range")
    if request.HasField("time_range") and has_range:
        raise FieldInvalidError("time_range", "must be absent with first_seq or last_seq")


def _focus(topics: Sequence[str]) -> str:
    check_count(topics, "focus_topics", max_items=MAX_FOCUS_TOPICS)
    return "\n".join(
        require_text(topic, f"focus_topics[{index}]", max_chars=MAX_TOPIC_CHARS)
        for index, topic in enumerate(topics)
    )


def _summary_response(made: ContextSummary) -> summary_pb.GetContextSummaryResponse:
    info = CounterInfo(made.counter.encoding, made.counter.exact, made.margin_tokens)
    return summary_pb.GetContextSummaryResponse(
        text=made.answer.text,
        total_tokens=made.answer.tokens,
        counter=counter_message(info),
        summaries=[_candidate_message(candidate) for candidate in made.answer.candidates],
        omitted_count=made.answer.omitted_count,
        degraded=made.degraded,
    )


def _candidate_message(candidate: Candidate) -> summary_pb.ContextSummary:
    summary = candidate.summary
    return summary_pb.ContextSummary(
        conversation_id=candidate.conversation_id,
        summary_id=summary.summary_id,
        first_seq=summary.block.first_seq,
        last_seq=summary.block.last_seq,
        level=LEVEL_NUMBERS[summary.level],
        score=candidate.score,
        quality_score=summary.digest.quality_score,
        handles=candidate.handles,
        retrieve_with=candidate.retrieve_with,
    )


def _summarize_response(asked: AskedPart, made: Summarized) -> pb.SummarizeResponse:
    digest = made.digest
    info = CounterInfo(made.counter.encoding, made.counter.exact, made.margin_tokens)
    return pb.SummarizeResponse(
        text=digest.text,
        total_tokens=digest.tokens,
        counter=counter_message(info),
        level=LEVEL_NUMBERS[asked.level],
        first_seq=made.first_seq,
        last_seq=made.last_seq,
        quality_score=digest.quality_score,
        citations=[citation_message(citation) for citation in digest.citations],
        provider=PROVIDER,
        algorithm=ALGORITHM,
        degraded=made.degraded,
    )
