"""Summaries of conversations: made, kept up to date, answered with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

import grpc.aio
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.support.appending import append, ids
from tests.support.context import RunningContext
from tests.support.end_users import create_agent, metadata_of, publishable_key
from tests.support.raw import RpcFailedError, failure, failure_of
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.summaries import ranges_of

from annals.context.v1 import context_service_pb2_grpc, summarization_service_pb2_grpc
from annals.context.v1 import context_summary_pb2 as summary_pb
from annals.context.v1 import summarization_service_pb2 as pb
from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import summary_service_pb2 as storage_pb
from annals_client import assistant, user
from annals_context.clients.counters import counter_for
from annals_context.clients.summaries import GrpcSummaries, GrpcSummaryArchive
from annals_context.commands.summarising import SummariseConversation
from annals_context.domain.material import SummaryLevel
from annals_context.domain.summarising.blocks import AgeingCurve
from annals_context.ports import Caller

TOPICS = ("lighthouse", "bakery", "violin", "glacier", "orchard", "submarine", "beehive")
START = datetime(2026, 3, 1, tzinfo=UTC)
count = counter_for("").count


def said(number: int) -> event_pb.NewEvent:
    """An event that tells of its topic, an hour after the one before."""
    topic = TOPICS[number // 20 % len(TOPICS)]
    speak = user if number % 2 else assistant
    event = speak(f"Note {number} is about the {topic}. It grew by {number} feet! Well.")
    event.event_time.FromDatetime(START + timedelta(hours=number))
    return event


async def converse(tenant: Tenant, until: int, room: str = "", since: int = 0) -> tuple[str, Any]:
    stored = await append(tenant.raw, room, *map(said, range(since, until)))
    return stored.conversation_id, ids(stored)


@dataclass(frozen=True, slots=True)
class Site:
    """A tenant, the context service as it sees it, and what a worker would run for it."""

    tenant: Tenant
    summaries: context_service_pb2_grpc.ContextServiceStub
    summarization: summarization_service_pb2_grpc.SummarizationServiceStub
    archive: GrpcSummaryArchive
    caller: Caller

    async def summarise(self, room: str) -> None:
        await SummariseConversation(self.archive, count)(self.caller, room)

    async def ask(self, query: str = "violin", **fields: Any) -> Any:
        request = summary_pb.GetContextSummaryRequest(query=query, **fields)
        return await self._call(self.summaries.GetContextSummary, request)

    async def summarize(self, room: str, **fields: Any) -> Any:
        request = pb.SummarizeRequest(conversation_id=room, **fields)
        return await self._call(self.summarization.Summarize, request)

    async def kept(self, room: str) -> list[tuple[Any, ...]]:
        request = storage_pb.ListSummariesRequest(conversation_id=room, page_size=1_000)
        found = await self.tenant.raw.call("ListSummaries", request)
        return sorted(
            (item.height, item.first_seq, item.last_seq, item.level, item.text, item.version)
            for item in found.summaries
        )

    async def _call(self, method: Any, request: Any) -> Any:
        metadata = (("authorization", self.caller.authorization), *self.caller.end_user)
        try:
            return await method(request, metadata=metadata, timeout=30)
        except grpc.aio.AioRpcError as error:
            raise RpcFailedError(failure_of(error)) from None


@pytest.fixture
async def site(
    storage: RunningStorage, context: RunningContext, tenant: Tenant
) -> AsyncIterator[Site]:
    async with (
        grpc.aio.insecure_channel(storage.address) as to_storage,
        grpc.aio.insecure_channel(context.address) as to_context,
    ):
        yield Site(
            tenant,
            context_service_pb2_grpc.ContextServiceStub(to_context),
            summarization_service_pb2_grpc.SummarizationServiceStub(to_context),
            GrpcSummaryArchive(to_storage),
            Caller(f"Bearer {tenant.api_key}", "summaries"),
        )


class TestKeeping:
    async def test_step_by_step_is_the_same_as_at_once(self, site: Site) -> None:
        room, _ = await converse(site.tenant, 90)
        await site.summarise(room)
        await converse(site.tenant, 150, room, since=90)
        other, _ = await converse(site.tenant, 150)

        await site.summarise(room)
        await site.summarise(other)

        stepwise, at_once = await site.kept(room), await site.kept(other)
        assert [item[:5] for item in stepwise] == [item[:5] for item in at_once]
        assert {item[1:3] for item in stepwise} == {(1, 64), (65, 128), (129, 150)}
        assert {item[5] for item in stepwise if item[1] == 1} == {1}
        again = await site.kept(room)
        await site.summarise(room)
        assert await site.kept(room) == again

    async def test_an_edit_outdates_its_block_and_what_is_above_alone(self, site: Site) -> None:
        room, events = await converse(site.tenant, 520)
        await site.summarise(room)
        assert (1, 1, 512) in await ranges_of(site.tenant, room, heights=[1])
        edit = event_pb.EditEventRequest(
            event_id=events[70], event=user("The zeppelin landed in Reykjavik at dawn with cargo.")
        )
        await site.tenant.raw.call("EditEvent", edit)

        left = {(first, last) for _, first, last in await ranges_of(site.tenant, room)}
        await site.summarise(room)

        assert (65, 128) not in left
        assert (1, 512) not in left
        assert (1, 64) in left
        kept = await site.kept(room)
        assert {item[5] for item in kept if item[1:3] == (1, 64)} == {1}
        detailed = next(i for i in kept if i[:4] == (0, 65, 128, storage_pb.SUMMARY_LEVEL_DETAILED))
        assert "zeppelin" in detailed[4]
        assert detailed[5] == 2

    async def test_a_run_is_recorded(self, site: Site) -> None:
        room, _ = await converse(site.tenant, 70)

        await site.summarise(room)

        request = storage_pb.ListSummaryRunsRequest(conversation_id=room)
        [run] = (await site.tenant.raw.call("ListSummaryRuns", request)).runs
        assert (run.summary_count, run.provider, run.cost_micros) == (6, "extractive", 0)
        assert run.input_tokens > run.output_tokens > 0

    async def test_contexts_get_older_parts_shorter(self, site: Site) -> None:
        room, _ = await converse(site.tenant, 700)
        await site.summarise(room)
        curve = AgeingCurve(detailed_events=64, standard_events=128, merged_events=100)

        found = await GrpcSummaries(site.archive, curve).list_summaries(
            site.caller, room, branch=0, limit=10
        )

        ranges = [(item.first_seq, item.last_seq) for item in found]
        assert ranges == [(1, 512), (513, 576), (577, 640), (641, 700)]
        assert [item.level for item in found] == [
            SummaryLevel.BRIEF, SummaryLevel.STANDARD, SummaryLevel.DETAILED,
            SummaryLevel.DETAILED,
        ]  # fmt: skip
        assert all(a.last_seq < b.first_seq for a, b in pairwise(found))


class TestAnswers:
    async def test_with_what_bears_on_the_query_first(self, site: Site) -> None:
        room, _ = await converse(site.tenant, 150)

        found = await site.ask("what about the violin?", conversation_ids=[room])

        first = found.summaries[0]
        assert first.first_seq <= 41 <= first.last_seq
        assert "violin" in found.text
        assert not found.degraded
        assert found.total_tokens == count(found.text) <= 2_000
        assert len(found.summaries) == 3
        assert first.handles[0].startswith("#")
        assert f'conversation_id="{room}"' in first.retrieve_with
        assert first.summary_id
        assert len(await site.kept(room)) == 9

    @pytest.mark.parametrize("max_tokens", [70, 150, 400])
    async def test_within_the_budget(self, site: Site, max_tokens: int) -> None:
        room, _ = await converse(site.tenant, 150)

        found = await site.ask(conversation_ids=[room], max_tokens=max_tokens)

        assert 0 < found.total_tokens == count(found.text) <= max_tokens
        assert found.omitted_count + len(found.summaries) == 3

    async def test_of_a_period_alone(self, site: Site) -> None:
        room, _ = await converse(site.tenant, 150)
        when = summary_pb.SummaryTimeRange()
        when.start.FromDatetime(START + timedelta(hours=20))
        when.end.FromDatetime(START + timedelta(hours=40))

        found = await site.ask("anything", conversation_ids=[room], time_range=when)

        assert [(item.first_seq, item.last_seq) for item in found.summaries] == [(21, 40)]
        assert "bakery" in found.text
        assert "lighthouse" not in found.text

    async def test_of_an_empty_conversation_with_nothing(self, site: Site) -> None:
        room = (await site.tenant.client.conversations.create()).conversation_id

        found = await site.ask(conversation_ids=[room])

        assert (found.text, list(found.summaries)) == ("", [])

    async def test_calls_for_end_users_keep_nothing(self, site: Site) -> None:
        agent_id = await create_agent(site.tenant)
        secret = await publishable_key(site.tenant, agent_id)
        mine = metadata_of(secret, session_id="s-1")
        created = await site.tenant.raw.call(
            "CreateConversation", conversation_pb.CreateConversationRequest(), metadata=mine
        )
        room = created.conversation.conversation_id
        await converse(site.tenant, 30, room)
        others, _ = await converse(site.tenant, 30)
        asked = pb.SummarizeRequest(conversation_id=room)

        made = await site.summarization.Summarize(asked, metadata=mine)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await site.summarization.Summarize(
                pb.SummarizeRequest(conversation_id=others), metadata=mine
            )

        assert made.text
        assert await site.kept(room) == []
        assert failure_of(refused.value).reason == "RESOURCE_NOT_FOUND"


class TestSummarize:
    async def test_a_range_word_for_word(self, site: Site) -> None:
        room, events = await converse(site.tenant, 60)

        made = await site.summarize(room, first_seq=21, last_seq=40)

        assert (made.first_seq, made.last_seq) == (21, 40)
        assert made.total_tokens == count(made.text) <= 200
        assert 0 < made.quality_score <= 1
        for cited in made.citations:
            words = made.text[cited.text_start : cited.text_end]
            assert words in said(cited.seq - 1).message.content
            assert events[cited.seq - 1] == cited.event_id

    async def test_a_topic_and_a_focus(self, site: Site) -> None:
        room, events = await converse(site.tenant, 60)

        topic = await site.summarize(room, event_ids=[events[3], events[45]])
        focused = await site.summarize(
            room, focus_topics=["bakery"], level=storage_pb.SUMMARY_LEVEL_BRIEF
        )

        assert {cited.seq for cited in topic.citations} == {4, 46}
        assert "bakery" in focused.text

    async def test_a_long_one_out_of_summaries(self, site: Site) -> None:
        room, _ = await converse(site.tenant, 1_000)
        await append(site.tenant.raw, room, user("A zeppelin landed in Reykjavik with cargo."))
        await converse(site.tenant, 1_100, room, since=1_000)

        made = await site.summarize(
            room, level=storage_pb.SUMMARY_LEVEL_DETAILED, focus_topics=["zeppelin"]
        )

        assert (made.first_seq, made.last_seq) == (1, 1_101)
        assert made.citations[0].seq < 200
        assert "A zeppelin landed in Reykjavik" in made.text
        assert not made.degraded


UNTIL = summary_pb.SummaryTimeRange(end=Timestamp(seconds=9))
REVERSED = summary_pb.SummaryTimeRange(start=Timestamp(seconds=9), end=Timestamp(seconds=8))


class TestRefusals:
    @pytest.mark.parametrize(
        ("field", "fields"),
        [
            ("query", {"query": ""}),
            ("query", {"query": " \n"}),
            ("level", {"level": 9}),
            ("max_tokens", {"max_tokens": -1}),
            ("time_range.end", {"time_range": REVERSED}),
            ("time_range", {"time_range": summary_pb.SummaryTimeRange()}),
            ("conversation_ids[0]", {"conversation_ids": ["x"]}),
        ],
    )
    async def test_of_questions(self, site: Site, field: str, fields: Any) -> None:
        refused = await failure(site.ask(**{"query": "q", **fields}))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))

    @pytest.mark.parametrize(
        ("field", "fields"),
        [
            ("last_seq", {"first_seq": 5, "last_seq": 4}),
            ("event_ids", {"event_ids": [str(uuid4())], "first_seq": 1}),
            ("time_range", {"time_range": UNTIL, "last_seq": 3}),
            ("provider", {"provider": "ollama"}),
            ("level", {"level": 4}),
            ("focus_topics[0]", {"focus_topics": [""]}),
        ],
    )  # fmt: skip
    async def test_of_parts(self, site: Site, field: str, fields: Any) -> None:
        refused = await failure(site.summarize(str(uuid4()), **fields))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))

    async def test_of_too_small_a_budget_which_say_what_works(self, site: Site) -> None:
        room, _ = await converse(site.tenant, 10)

        refused = await failure(site.ask(conversation_ids=[room], max_tokens=10))
        minimum = int(dict(refused.metadata)["minimum_budget_tokens"])
        found = await site.ask(conversation_ids=[room], max_tokens=minimum)

        assert refused.reason == "BUDGET_TOO_SMALL"
        assert 0 < found.total_tokens <= minimum

    async def test_foreign_conversations_and_events_are_missing(
        self, site: Site, storage: RunningStorage
    ) -> None:
        own, _ = await converse(site.tenant, 2)
        async with fresh_tenant(storage) as theirs:
            room, events = await converse(theirs, 2)
            outcomes = [
                await failure(site.ask(conversation_ids=[room])),
                await failure(site.ask(conversation_ids=[str(uuid4())])),
                await failure(site.summarize(room)),
                await failure(site.summarize(own, event_ids=[events[0]])),
            ]

        assert {outcome.reason for outcome in outcomes} == {"RESOURCE_NOT_FOUND"}
