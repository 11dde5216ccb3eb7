"""What summaries are made of and where they are kept, over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import grpc.aio

from annals.storage.v1 import (
    event_service_pb2,
    event_service_pb2_grpc,
    search_service_pb2,
    search_service_pb2_grpc,
    summary_service_pb2,
    summary_service_pb2_grpc,
)
from annals_common.errors import ResourceNotFoundError
from annals_context.clients.calling import call
from annals_context.domain.events import Event
from annals_context.domain.material import Summary, SummaryLevel
from annals_context.domain.summarising.blocks import AgeingCurve, Block, cover
from annals_context.domain.summarising.covering import fetch
from annals_context.domain.summarising.kept import (
    PROVIDER,
    FoundEvent,
    KeptSummary,
    MadeSummary,
    SummaryRun,
    SummarySource,
    TimeRange,
)
from annals_context.domain.summarising.writing import ALGORITHM
from annals_context.ports import Caller
from annals_context.summary_translation import (
    LEVEL_NUMBERS,
    kept_summary,
    run_message,
    summary_message,
    timestamp_of,
)
from annals_context.translation import event_from

PAGE_EVENTS = 1_000


class GrpcSummaryArchive:
    """SummaryService, and of the other services what summaries need."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._summaries = summary_service_pb2_grpc.SummaryServiceStub(channel)
        self._events = event_service_pb2_grpc.EventServiceStub(channel)
        self._search = search_service_pb2_grpc.SearchServiceStub(channel)

    async def source(
        self, caller: Caller, conversation_id: str, *, branch: int, blocks: Sequence[Block]
    ) -> SummarySource:
        """Return what there is to summarise."""
        request = summary_service_pb2.GetSummarySourceRequest(
            conversation_id=conversation_id,
            branch=branch,
            ranges=[
                summary_service_pb2.SummaryRange(first_seq=block.first_seq, last_seq=block.last_seq)
                for block in blocks
            ],
        )
        found = await call(self._summaries.GetSummarySource, request, caller)
        return SummarySource(found.branch, found.head_seq, tuple(found.source_versions))

    async def events(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        first_seq: int,
        last_seq: int,
    ) -> list[Event]:
        """Return the events of a range, both ends included, oldest first."""
        request = event_service_pb2.ListEventsRequest(
            conversation_id=conversation_id,
            branch=branch,
            after_seq=first_seq - 1,
            before_seq=last_seq + 1,
            page_size=PAGE_EVENTS,
        )
        pages = await self._pages(self._events.ListEvents, request, caller)
        return [event_from(event) for page in pages for event in page.events]

    async def newest_events(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        when: TimeRange,
        limit: int,
    ) -> list[Event]:
        """Return the newest events of a time range, oldest first."""
        request = event_service_pb2.ListEventsRequest(
            conversation_id=conversation_id,
            branch=branch,
            start_time=timestamp_of(when.start),
            end_time=timestamp_of(when.end),
            order=event_service_pb2.SORT_ORDER_DESCENDING,
            page_size=min(limit, PAGE_EVENTS),
        )
        pages = await self._pages(self._events.ListEvents, request, caller, max_items=limit)
        found = [event_from(event) for page in pages for event in page.events]
        return found[:limit][::-1]

    async def events_by_id(
        self, caller: Caller, conversation_id: str, event_ids: Sequence[str]
    ) -> list[Event]:
        """Return these events of a conversation. Raises ResourceNotFoundError without one."""
        request = event_service_pb2.BatchGetEventsRequest(event_ids=event_ids)
        response = await call(self._events.BatchGetEvents, request, caller)
        strangers = [e.event_id for e in response.events if e.conversation_id != conversation_id]
        for event_id in (*response.missing_event_ids, *strangers):
            raise ResourceNotFoundError("event", event_id)
        return sorted(map(event_from, response.events), key=lambda event: event.seq)

    async def list_kept(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        within: Block | None = None,
        height: int | None = None,
        level: SummaryLevel | None = None,
    ) -> list[KeptSummary]:
        """Return what holds and is as we make it, by first event."""
        request = summary_service_pb2.ListSummariesRequest(
            conversation_id=conversation_id,
            branch=branch,
            heights=[] if height is None else [height],
            levels=[] if level is None else [LEVEL_NUMBERS[level]],
            first_seq=within.first_seq if within else 0,
            last_seq=within.last_seq if within else 0,
            provider=PROVIDER,
            view=summary_service_pb2.SUMMARY_VIEW_FULL
            if within
            else summary_service_pb2.SUMMARY_VIEW_BASIC,
            page_size=PAGE_EVENTS,
        )
        pages = await self._pages(self._summaries.ListSummaries, request, caller)
        found = [item for page in pages for item in page.summaries]
        return [kept_summary(item) for item in found if item.model == ALGORITHM]

    async def get(self, caller: Caller, conversation_id: str, summary_id: str) -> KeptSummary:
        """Return a summary of a conversation, also one that was outdated."""
        request = summary_service_pb2.GetSummaryRequest(summary_id=summary_id)
        found = (await call(self._summaries.GetSummary, request, caller)).summary
        if found.conversation_id != conversation_id:
            raise ResourceNotFoundError("summary", summary_id)
        return kept_summary(found)

    async def put(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        summaries: Sequence[MadeSummary],
        run: SummaryRun | None = None,
    ) -> None:
        """Store all of them or none."""
        request = summary_service_pb2.PutSummariesRequest(
            conversation_id=conversation_id,
            branch=branch,
            summaries=[summary_message(made) for made in summaries],
            run=run_message(run) if run else None,
        )
        await call(self._summaries.PutSummaries, request, caller)

    async def find(
        self,
        caller: Caller,
        query: str,
        conversation_ids: Sequence[str],
        *,
        when: TimeRange,
        limit: int,
    ) -> tuple[list[FoundEvent], tuple[str, ...]]:
        """Search these conversations, or all."""
        request = search_service_pb2.SearchEventsRequest(
            query=query,
            filter=search_service_pb2.SearchFilter(
                conversation_ids=conversation_ids,
                start_time=timestamp_of(when.start),
                end_time=timestamp_of(when.end),
            ),
            limit=limit,
            ids_only=True,
        )
        response = await call(self._search.SearchEvents, request, caller)
        hits = [FoundEvent(hit.conversation_id, hit.seq, hit.score) for hit in response.hits]
        return hits, tuple(response.degraded)

    async def _pages(
        self,
        method: Callable[..., Any],
        request: Any,
        caller: Caller,
        *,
        max_items: int | None = None,
    ) -> list[Any]:
        pages: list[Any] = []
        items = 0
        while True:
            page: Any = await call(method, request, caller)
            pages.append(page)
            items += request.page_size
            if not page.next_page_token or (max_items is not None and items >= max_items):
                return pages
            request.page_token = page.next_page_token


class GrpcSummaries:
    """The port Summaries: what is kept, the older the shorter."""

    def __init__(self, archive: GrpcSummaryArchive, curve: AgeingCurve) -> None:
        self._archive, self._curve = archive, curve

    async def list_summaries(
        self, caller: Caller, conversation_id: str, *, branch: int, limit: int
    ) -> Sequence[Summary]:
        """Return valid summaries that together cover as much as possible, oldest range first."""
        source = await self._archive.source(caller, conversation_id, branch=branch, blocks=())

        async def read(block: Block, level: SummaryLevel) -> list[KeptSummary]:
            return await self._archive.list_kept(
                caller,
                conversation_id,
                branch=source.branch,
                within=block,
                height=block.height,
                level=level,
            )

        kept = await fetch(cover(source.head_seq, self._curve, limit=limit), read)
        now = datetime.now(UTC)
        return [summary.material(now) for summary in kept[max(0, len(kept) - limit) :]]

    async def quoted(self, caller: Caller, conversation_id: str, summary_id: str) -> Sequence[int]:
        """Return the positions of the events a summary quotes."""
        summary = await self._archive.get(caller, conversation_id, summary_id)
        return list(dict.fromkeys(cited.piece.seq for cited in summary.digest.citations))
