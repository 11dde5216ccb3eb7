"""Wires what makes and reads summaries."""

from __future__ import annotations

from dataclasses import dataclass

import grpc.aio

from annals_context.clients.counters import counter_for
from annals_context.clients.summaries import GrpcSummaries, GrpcSummaryArchive
from annals_context.commands.context_summary import GetContextSummary
from annals_context.commands.summarising import SummariseConversation
from annals_context.commands.summarize import Summarize
from annals_context.commands.summary_reading import ReadSummaries
from annals_context.domain.summarising.blocks import AgeingCurve
from annals_context.settings import SummarySettings


@dataclass(frozen=True, slots=True)
class SummaryUseCases:
    """What the handlers, PrepareContext and background workers need of summaries.

    `summarise`: for workers, called with (caller, conversation_id). `port`: for contexts.
    """

    summarise: SummariseConversation
    port: GrpcSummaries
    get_context_summary: GetContextSummary
    summarize: Summarize


def summary_use_cases(channel: grpc.aio.Channel, settings: SummarySettings) -> SummaryUseCases:
    """Return them over a channel to storage. Summaries are limited in o200k_base."""
    archive = GrpcSummaryArchive(channel)
    curve = AgeingCurve(
        detailed_events=settings.detailed_events,
        standard_events=settings.standard_events,
        merged_events=settings.merged_events,
    )
    summarise = SummariseConversation(archive, counter_for("").count)
    read = ReadSummaries(archive, summarise, curve)
    return SummaryUseCases(
        summarise=summarise,
        port=GrpcSummaries(archive, curve),
        get_context_summary=GetContextSummary(archive, read, counter_for),
        summarize=Summarize(archive, read, counter_for),
    )
