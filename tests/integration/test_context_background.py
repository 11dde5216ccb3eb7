"""PrepareContext with topics and summaries beside real storage, and without them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.golden.context.prepared import PERIODS, SUMMARIES, TOPICS
from tests.support.background import MemorySummaries, MemoryTopics
from tests.support.storage import RunningStorage, Tenant

from annals_client import AsyncAnnalsClient, user
from annals_common.channels import open_aio_channel
from annals_common.errors import DeadlineExceededError, DependencyUnavailableError
from annals_context.clients.counters import counter_for
from annals_context.clients.storage import GrpcStorage
from annals_context.commands import background
from annals_context.commands.preparing import Prepare, PrepareContext, Prepared
from annals_context.domain.model import PayloadFormat, Section
from annals_context.domain.options import IndexChoices, StrategyName
from annals_context.ports import Caller

N_EVENTS = 90
"""More than any context shows as snippets within the budget asked for."""


@pytest.fixture
async def prepare_with(
    storage: RunningStorage, tenant: Tenant, annals: AsyncAnnalsClient
) -> AsyncIterator:
    notes = [user(f"Note {i}: the weather was grey.") for i in range(N_EVENTS)]
    stored = await annals.events.append("", notes)
    wanted = Prepare(
        conversation_id=stored.conversation_id,
        budget_tokens=1_000,
        response_reserve_tokens=0,
        query="",
        current_message="",
        model="",
        payload_format=PayloadFormat.TEXT,
        relevant_events=0,
        read_your_writes=False,
    )
    async with open_aio_channel(storage.address, None) as channel:

        async def prepare(
            strategy: StrategyName, topics: MemoryTopics, summaries: MemorySummaries
        ) -> Prepared:
            command = PrepareContext(GrpcStorage(channel), counter_for, topics, summaries)
            caller = Caller(f"Bearer {tenant.api_key}", "test")
            return await command(caller, replace(wanted, choices=IndexChoices(strategy=strategy)))

        yield prepare


@pytest.mark.parametrize(
    ("strategy", "section"),
    [
        (StrategyName.CLUSTERED, Section.TOPICS),
        (StrategyName.HIERARCHICAL, Section.PERIODS),
        (StrategyName.SNIPPET, Section.SUMMARY),
    ],
)
async def test_what_was_prepared_is_shown(
    prepare_with, strategy: StrategyName, section: Section
) -> None:
    summaries = MemorySummaries(SUMMARIES)

    prepared = await prepare_with(strategy, MemoryTopics(TOPICS, PERIODS), summaries)

    assert prepared.context.strategy is strategy
    assert prepared.degraded == ()
    [(caller, _, branch)] = summaries.asked
    assert caller.timeout_s == background.INDEX_TIMEOUT_SECONDS
    assert branch == 0
    shown = [item for item in prepared.context.items if item.section is section]
    assert shown
    assert all(item.retrieve_with in prepared.context.payload for item in shown)


@pytest.mark.parametrize("strategy", [StrategyName.CLUSTERED, StrategyName.HIERARCHICAL])
@pytest.mark.parametrize(
    ("topics", "reason"),
    [
        (MemoryTopics(error=DeadlineExceededError()), "topics_timeout"),
        (MemoryTopics(is_silent=True), "topics_timeout"),
        (MemoryTopics(error=DependencyUnavailableError("storage")), "topics_unavailable"),
        (MemoryTopics(), "topics_missing"),
    ],
)
async def test_without_topics_there_are_snippets(
    prepare_with,
    monkeypatch: pytest.MonkeyPatch,
    strategy: StrategyName,
    topics: MemoryTopics,
    reason: str,
) -> None:
    monkeypatch.setattr(background, "INDEX_TIMEOUT_SECONDS", 0.2)

    prepared = await prepare_with(strategy, topics, MemorySummaries(SUMMARIES))

    assert prepared.degraded == (reason,)
    assert prepared.context.strategy is StrategyName.SNIPPET
    assert "Note 89" in prepared.context.payload
    assert 'expand_detail("s-2")' in prepared.context.payload


async def test_without_summaries_there_is_the_rest(prepare_with) -> None:
    summaries = MemorySummaries(error=DeadlineExceededError())

    prepared = await prepare_with(StrategyName.CLUSTERED, MemoryTopics(TOPICS, PERIODS), summaries)

    assert prepared.degraded == ("summaries_timeout",)
    assert prepared.context.strategy is StrategyName.CLUSTERED
