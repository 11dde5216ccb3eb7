"""Summaries as somebody might store them."""

from __future__ import annotations

from typing import Any

from tests.support.storage import Tenant

from annals.storage.v1 import summary_service_pb2 as pb

TEXT = "user: hi"


def summary_of(first_seq: int, last_seq: int, *, cites: str = "", **fields: Any) -> pb.Summary:
    """A summary of a range, which may cite its first event."""
    values: dict[str, Any] = {
        "level": pb.SUMMARY_LEVEL_BRIEF,
        "provider": "test",
        "model": "by hand",
        "text": TEXT,
        "token_count": 3,
        "quality_score": 0.5,
    }
    if cites:
        values["citations"] = [
            pb.SummaryCitation(
                event_id=cites, seq=first_seq, speaker="user", text_start=6, text_end=len(TEXT)
            )
        ]
    return pb.Summary(first_seq=first_seq, last_seq=last_seq, **{**values, **fields})


async def source_of(
    tenant: Tenant, conversation_id: str, *ranges: tuple[int, int], branch: int = 0
) -> pb.GetSummarySourceResponse:
    """What there is to summarise."""
    request = pb.GetSummarySourceRequest(
        conversation_id=conversation_id,
        branch=branch,
        ranges=[pb.SummaryRange(first_seq=first, last_seq=last) for first, last in ranges],
    )
    found: pb.GetSummarySourceResponse = await tenant.raw.call("GetSummarySource", request)
    return found


async def put_request(
    tenant: Tenant, conversation_id: str, *summaries: pb.Summary, branch: int = 0, **fields: Any
) -> pb.PutSummariesRequest:
    """A request that stores summaries of what is there now."""
    ranges = [(item.first_seq, item.last_seq) for item in summaries]
    found = await source_of(tenant, conversation_id, *ranges, branch=branch)
    for item, version in zip(summaries, found.source_versions, strict=True):
        item.source_version = version
    return pb.PutSummariesRequest(
        conversation_id=conversation_id, branch=branch, summaries=summaries, **fields
    )


async def put(
    tenant: Tenant, conversation_id: str, *summaries: pb.Summary, **fields: Any
) -> list[pb.Summary]:
    """Store summaries of what is there now."""
    request = await put_request(tenant, conversation_id, *summaries, **fields)
    return list((await tenant.raw.call("PutSummaries", request)).summaries)


async def ranges_of(
    tenant: Tenant, conversation_id: str, **query: Any
) -> list[tuple[int, int, int]]:
    """Branch and range of what holds."""
    request = pb.ListSummariesRequest(conversation_id=conversation_id, **query)
    found = await tenant.raw.call("ListSummaries", request)
    return [(item.branch, item.first_seq, item.last_seq) for item in found.summaries]
