"""Domain objects to messages of the API."""

from __future__ import annotations

from annals.context.v1 import context_service_pb2, resources_pb2
from annals_context.commands.preparing import Prepare, Prepared
from annals_context.domain.model import ContextItem, CounterInfo, LedgerEntry, Repair
from annals_context.domain.pins import DetailChange
from annals_context.domain.reuse import Reuse
from annals_context.handlers.enums import (
    detail_number,
    format_number,
    section_number,
    strategy_number,
    tier_number,
)


def prepared_response(
    prepared: Prepared, request: Prepare
) -> context_service_pb2.PrepareContextResponse:
    """Return the answer of PrepareContext."""
    context = prepared.context
    return context_service_pb2.PrepareContextResponse(
        payload=context.payload,
        format=format_number(context.payload_format),
        total_tokens=context.total_tokens,
        budget_tokens=request.budget_tokens,
        response_reserve_tokens=request.response_reserve_tokens,
        counter=counter_message(context.counter),
        ledger=[_ledger_message(entry) for entry in context.ledger],
        items=[_item_message(item) for item in context.items],
        omitted_events=context.omitted_events,
        strategy=strategy_number(context.strategy),
        context_version=context.context_version,
        conversation_version=prepared.conversation_version,
        degraded=prepared.degraded,
        repairs=[repair_message(repair) for repair in context.repairs],
    )


def add_reuse(response: context_service_pb2.PrepareContextResponse, reuse: Reuse) -> None:
    """Say how much of a context was there before."""
    response.cached = tier_number(reuse.tier)
    response.previous_context_version = reuse.previous_version
    response.shared_prefix_bytes = reuse.prefix_bytes
    response.shared_prefix_tokens = reuse.prefix_tokens


def counter_message(counter: CounterInfo) -> resources_pb2.TokenCounter:
    """Return how tokens were counted."""
    return resources_pb2.TokenCounter(
        encoding=counter.encoding, exact=counter.exact, margin_tokens=counter.margin_tokens
    )


def repair_message(repair: Repair) -> resources_pb2.Repair:
    """Return what was mended."""
    return resources_pb2.Repair(
        kind=repair.kind, tool_call_id=repair.tool_call_id, event_id=repair.event_id
    )


def change_message(change: DetailChange) -> resources_pb2.DetailChange:
    """Return what became of one item."""
    nothing = resources_pb2.DETAIL_LEVEL_UNSPECIFIED
    return resources_pb2.DetailChange(
        handle=change.handle,
        before=detail_number(change.before) if change.before else nothing,
        after=detail_number(change.after) if change.after else nothing,
    )


def _ledger_message(entry: LedgerEntry) -> resources_pb2.LedgerEntry:
    return resources_pb2.LedgerEntry(
        section=section_number(entry.section),
        tokens=entry.tokens,
        full_count=entry.full_count,
        snippet_count=entry.snippet_count,
        stub_count=entry.stub_count,
    )


def _item_message(item: ContextItem) -> resources_pb2.ContextItem:
    return resources_pb2.ContextItem(
        event_id=item.event_id,
        seq=item.seq,
        section=section_number(item.section),
        detail=detail_number(item.detail),
        tokens=item.tokens,
        score=item.score,
        handle=item.handle,
        retrieve_with=item.retrieve_with,
    )
