"""SummaryService."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals.storage.v1 import summary_service_pb2 as pb
from annals.storage.v1 import summary_service_pb2_grpc as pb_grpc
from annals_common.errors import PageTokenInvalidError, ResourceNotFoundError
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.validation import (
    bounded,
    check_count,
    check_response_size,
    enum,
    enums,
    page_size,
    require_uuid,
    text,
)
from annals_storage.domain.summaries import (
    Summary,
    SummaryLevel,
    SummaryQuery,
    SummaryRun,
    SummaryRunStatus,
)
from annals_storage.handlers.access import Access, data_tenant, own_data_tenant
from annals_storage.handlers.event_queries import MAX_BRANCH
from annals_storage.handlers.output import timestamp_message
from annals_storage.handlers.summary_input import (
    LEVELS,
    MAX_HEIGHT,
    MAX_PROVIDER_CHARS,
    MAX_SEQ,
    RUN_STATUSES,
    new_run,
    new_summaries,
    seq_range,
)
from annals_storage.ports.summaries import SummaryStore

MAX_RANGES = 100
VIEWS: dict[int, bool] = {
    pb.SUMMARY_VIEW_UNSPECIFIED: True,
    pb.SUMMARY_VIEW_FULL: True,
    pb.SUMMARY_VIEW_BASIC: False,
}
_LEVEL_NUMBERS: dict[SummaryLevel, Any] = {value: key for key, value in LEVELS.items()}
_STATUS_NUMBERS: dict[SummaryRunStatus, Any] = {value: key for key, value in RUN_STATUSES.items()}


class SummaryHandler(pb_grpc.SummaryServiceServicer):
    """Translates. End users list what is theirs and write nothing."""

    def __init__(self, summaries: SummaryStore, access: Access) -> None:
        self._summaries, self._access = summaries, access

    async def GetSummarySource(
        self, request: pb.GetSummarySourceRequest, context: Any
    ) -> pb.GetSummarySourceResponse:
        own_data_tenant("GetSummarySource")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        check_count(request.ranges, "ranges", max_items=MAX_RANGES)
        ranges = [seq_range(item, f"ranges[{index}]") for index, item in enumerate(request.ranges)]
        branch = _branch(request)
        tenant_id = await self._access.conversation("GetSummarySource", conversation_id)
        found = await self._summaries.source(tenant_id, conversation_id, branch, ranges)
        return pb.GetSummarySourceResponse(
            branch=found.branch, head_seq=found.head_seq, source_versions=found.source_versions
        )

    async def PutSummaries(
        self, request: pb.PutSummariesRequest, context: Any
    ) -> pb.PutSummariesResponse:
        tenant_id = data_tenant("PutSummaries")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        stored, run = await self._summaries.put(
            tenant_id, conversation_id, _branch(request), new_summaries(request), new_run(request)
        )
        return pb.PutSummariesResponse(
            summaries=[_summary_message(item) for item in stored],
            run=_run_message(run) if run else None,
        )

    async def GetSummary(
        self, request: pb.GetSummaryRequest, context: Any
    ) -> pb.GetSummaryResponse:
        tenant_id = data_tenant("GetSummary")
        summary_id = require_uuid(request.summary_id, "summary_id")
        found = await self._summaries.get(tenant_id, summary_id)
        if found is None:
            raise ResourceNotFoundError("summary", str(summary_id))
        return pb.GetSummaryResponse(summary=_summary_message(found))

    async def ListSummaries(
        self, request: pb.ListSummariesRequest, context: Any
    ) -> pb.ListSummariesResponse:
        tenant_id = own_data_tenant("ListSummaries")
        limit = page_size(request.page_size)
        query = _query(request, tenant_id, limit + 1)
        await self._access.conversation("ListSummaries", query.conversation_id)
        page, has_more = cut_page(await self._summaries.page(tenant_id, query), limit)
        response = pb.ListSummariesResponse(summaries=[_summary_message(item) for item in page])
        if has_more:
            cursor = (str(page[-1].first_seq), str(page[-1].summary_id))
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        check_response_size(response, "page_size")
        return response

    async def DeleteSummary(
        self, request: pb.DeleteSummaryRequest, context: Any
    ) -> pb.DeleteSummaryResponse:
        tenant_id = data_tenant("DeleteSummary")
        summary_id = require_uuid(request.summary_id, "summary_id")
        if not await self._summaries.delete(tenant_id, summary_id):
            raise ResourceNotFoundError("summary", str(summary_id))
        return pb.DeleteSummaryResponse()

    async def ListSummaryRuns(
        self, request: pb.ListSummaryRunsRequest, context: Any
    ) -> pb.ListSummaryRunsResponse:
        tenant_id = data_tenant("ListSummaryRuns")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        limit = page_size(request.page_size)
        cursor = decode_time_cursor(decode_page_token(request, tenant_id, parts=2))
        found = await self._summaries.runs(
            tenant_id, conversation_id, cursor=cursor, limit=limit + 1
        )
        page, has_more = cut_page(found, limit)
        response = pb.ListSummaryRunsResponse(runs=[_run_message(item) for item in page])
        if has_more:
            last = encode_time_cursor(page[-1].ended_at, page[-1].run_id)
            response.next_page_token = encode_page_token(request, tenant_id, last)
        return response


def _branch(request: Any) -> int | None:
    bounded(request.branch, "branch", low=0, high=MAX_BRANCH)
    return request.branch or None


def _query(request: pb.ListSummariesRequest, tenant_id: UUID, limit: int) -> SummaryQuery:
    check_count(request.levels, "levels", max_items=len(LEVELS))
    check_count(request.heights, "heights", max_items=MAX_HEIGHT + 1)
    for index, height in enumerate(request.heights):
        bounded(height, f"heights[{index}]", low=0, high=MAX_HEIGHT)
    bounded(request.first_seq, "first_seq", low=0, high=MAX_SEQ)
    bounded(request.last_seq, "last_seq", low=0, high=MAX_SEQ)
    return SummaryQuery(
        conversation_id=require_uuid(request.conversation_id, "conversation_id"),
        branch=_branch(request),
        levels=enums(request.levels, LEVELS, "levels"),
        heights=tuple(request.heights),
        first_seq=request.first_seq,
        last_seq=request.last_seq or None,
        provider=text(request.provider, "provider", max_chars=MAX_PROVIDER_CHARS),
        with_text=enum(request.view, VIEWS, "view"),
        limit=limit,
        cursor=_cursor(decode_page_token(request, tenant_id, parts=2)),
    )


def _cursor(parts: tuple[str, ...] | None) -> tuple[int, UUID] | None:
    if parts is None:
        return None
    try:
        seq, summary_id = int(parts[0]), UUID(parts[1])
    except ValueError as error:
        raise PageTokenInvalidError from error
    if not 0 <= seq <= MAX_SEQ:
        raise PageTokenInvalidError
    return seq, summary_id


def _summary_message(summary: Summary) -> pb.Summary:
    return pb.Summary(
        summary_id=str(summary.summary_id),
        conversation_id=str(summary.conversation_id),
        branch=summary.branch,
        height=summary.height,
        level=_LEVEL_NUMBERS[summary.level],
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        provider=summary.provider,
        model=summary.model,
        text=summary.body,
        token_count=summary.token_count,
        quality_score=summary.quality_score,
        citations=[
            pb.SummaryCitation(
                event_id=str(cited.event_id),
                seq=cited.seq,
                speaker=cited.speaker,
                date=cited.date,
                text_start=cited.text_start,
                text_end=cited.text_end,
            )
            for cited in summary.citations
        ],
        source_version=summary.source_version,
        version=summary.version,
        create_time=timestamp_message(summary.created_at),
    )


def _run_message(run: SummaryRun) -> pb.SummaryRun:
    return pb.SummaryRun(
        run_id=str(run.run_id),
        conversation_id=str(run.conversation_id),
        provider=run.provider,
        model=run.model,
        status=_STATUS_NUMBERS[run.status],
        summary_count=run.summary_count,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        cost_micros=run.cost_micros,
        error=run.error,
        start_time=timestamp_message(run.started_at),
        end_time=timestamp_message(run.ended_at),
    )
