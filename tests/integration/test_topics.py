"""Topics follow a conversation: what they are of, what they are called, and that they stay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, ids
from tests.support.cli import Run
from tests.support.context import running_context
from tests.support.raw import Raw, failure
from tests.support.scratch import run as run_sql
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.topics import (
    BREAD,
    HARBOUR,
    clustered,
    clustering,
    events_of,
    plant_topic,
    topics_of,
    turns,
)
from tests.support.workers import as_job, due, lease

from annals.context.v1 import context_service_pb2_grpc, topics_pb2
from annals.storage.v1 import erasure_service_pb2 as erasure_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import topic_service_pb2 as pb
from annals_client import user
from annals_common.channels import open_aio_channel
from annals_common.errors import JobLeaseLostError
from annals_common.principal import JobLease
from annals_context.clients.topics import GrpcTopics
from annals_context.domain import topic_work
from annals_context.ports import Caller
from annals_local.postgres import LocalPostgres
from annals_storage.domain.jobs import read_token
from annals_storage.domain.topics import NewTopic, TopicLine, WholeAssignment
from annals_storage.postgres.topics import PostgresClustering

_TOGETHER = "SELECT event_count FROM annals.topic_runs WHERE conversation_id = %s"


@pytest.fixture
async def talk(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> AsyncIterator[tuple[str, list[str]]]:
    """A clustered conversation of two topics, with a worker at work; its events' ids."""
    stored = await append(own_tenant.raw, "", *turns(HARBOUR, BREAD))
    async with clustering(own_storage):
        await clustered(own_tenant, own_postgres)
        yield stored.conversation_id, ids(stored)


async def test_are_of_what_belongs_together_and_named_after_it(
    own_tenant: Tenant, talk: tuple[str, list[str]]
) -> None:
    room, _ = talk

    found = await topics_of(own_tenant.raw, room)

    assert [topic.event_count for topic in found] == [5, 5]
    for topic, said, other in zip(
        sorted(found, key=lambda t: "bread" in t.label), (HARBOUR, BREAD), ("bread", "ferry"),
        strict=True,
    ):  # fmt: skip
        assert await events_of(own_tenant.raw, room, topic.topic_id) == list(said)
        assert topic.label
        assert other not in topic.label
        assert set(topic.samples) <= set(said)
        assert topic.samples
        assert any(topic.summary.startswith(text) for text in said)


async def test_keep_their_ids_when_all_is_clustered_anew(
    own_tenant: Tenant, own_postgres: LocalPostgres, talk: tuple[str, list[str]]
) -> None:
    room, _ = talk
    before = {topic.topic_id for topic in await topics_of(own_tenant.raw, room)}

    await append(
        own_tenant.raw, room, user("One more word of the ferry in the harbour: berth nine.")
    )
    await clustered(own_tenant, own_postgres)
    found = await topics_of(own_tenant.raw, room)

    assert {topic.topic_id for topic in found} == before
    assert [topic.event_count for topic in found] == [6, 5]


async def test_forget_what_is_erased_at_once_and_shrink(
    own_tenant: Tenant, own_postgres: LocalPostgres, talk: tuple[str, list[str]]
) -> None:
    room, events = talk
    for event_id in events[0:4:2]:
        await own_tenant.raw.call("EraseEvent", erasure_pb.EraseEventRequest(event_id=event_id))

    at_once = await topics_of(own_tenant.raw, room)
    await clustered(own_tenant, own_postgres)
    later = await topics_of(own_tenant.raw, room)

    shown = [(topic.event_count, bool(topic.label), len(topic.samples)) for topic in at_once]
    assert sorted(shown) == [(3, False, 0), (5, True, 3)]
    # Three are too few for a topic.
    assert [topic.event_count for topic in later] == [5]
    assert "bread" in f"{later[0].label} {later[0].summary}"


async def test_show_nothing_of_what_is_deleted_and_go_with_it(
    own_tenant: Tenant, own_postgres: LocalPostgres, talk: tuple[str, list[str]]
) -> None:
    room, events = talk
    for event_id in events[1::2]:
        await own_tenant.raw.call("DeleteEvent", event_pb.DeleteEventRequest(event_id=event_id))

    at_once = await topics_of(own_tenant.raw, room)
    await clustered(own_tenant, own_postgres)

    lines = {line for topic in at_once for line in topic.samples}
    assert lines <= set(HARBOUR)
    [left] = await topics_of(own_tenant.raw, room)
    assert await events_of(own_tenant.raw, room, left.topic_id) == list(HARBOUR)


async def test_of_a_branch_are_of_what_is_in_view_there(
    own_tenant: Tenant, own_postgres: LocalPostgres, talk: tuple[str, list[str]]
) -> None:
    room, events = talk
    revert = event_pb.RevertToEventRequest(conversation_id=room, event_id=events[7])
    await own_tenant.raw.call("RevertToEvent", revert)
    await append(own_tenant.raw, room, *[user(text.replace("nine", "ten")) for text in HARBOUR])
    await clustered(own_tenant, own_postgres)

    current = await topics_of(own_tenant.raw, room)
    trunk = await topics_of(own_tenant.raw, room, branch=1)

    assert [topic.event_count for topic in current] == [9, 4]
    assert sorted(topic.event_count for topic in trunk) == [5, 5]
    assert {topic.topic_id for topic in current} == {topic.topic_id for topic in trunk}


async def test_periods_are_seen_from_the_newest_event(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    def at(day: int, month: int, text: str) -> event_pb.NewEvent:
        event = user(text)
        event.event_time.FromDatetime(datetime(2026, month, day, 12, tzinfo=UTC))
        return event

    # 12 March 2026 is a Thursday.
    days = ((1, 2), (3, 3), (10, 3), (12, 3), (12, 3))
    said = [at(*day, text) for day, text in zip(days, HARBOUR, strict=True)]
    stored = await append(own_tenant.raw, "", *said, at(12, 3, "Something else altogether."))
    async with clustering(own_storage):
        await clustered(own_tenant, own_postgres)

    channel = open_aio_channel(own_storage.address, None)
    caller = Caller(f"Bearer {own_tenant.api_key}", "request")
    topics = GrpcTopics(channel)
    periods = await topics.list_periods(caller, stored.conversation_id, branch=0)
    [topic] = await topics.list_topics(caller, stored.conversation_id, branch=0, limit=10)
    await channel.close(None)

    found = [(period.name, period.event_count, period.topics[0][2]) for period in periods]
    assert found == [("today", 3, 2), ("this_week", 1, 1), ("this_month", 1, 1), ("older", 1, 1)]
    assert {period.topics[0][:2] for period in periods} == {(topic.topic_id, topic.label)}
    assert (topic.first_at.day, topic.last_at.day, topic.event_count) == (1, 12, 5)


async def test_are_asked_for_through_context(
    own_storage: RunningStorage, own_tenant: Tenant, talk: tuple[str, list[str]]
) -> None:
    room, _ = talk
    async with running_context(own_storage.address) as context, Raw(context.address, "") as raw:
        stub = context_service_pb2_grpc.ContextServiceStub(raw.channel)
        mine = own_tenant.raw.metadata()
        listed = await stub.ListTopics(
            topics_pb2.ListTopicsRequest(conversation_id=room), metadata=mine
        )
        topic = listed.topics[0]
        cluster = await stub.GetCluster(
            topics_pb2.GetClusterRequest(cluster_id=topic.topic_id, limit=2), metadata=mine
        )
        by_label = topics_pb2.GetTopicMessagesRequest(
            conversation_id=room, topic=topic.label.upper(), page_size=3
        )
        first = await stub.GetTopicMessages(by_label, metadata=mine)
        by_label.page_token = first.next_page_token
        second = await stub.GetTopicMessages(by_label, metadata=mine)
        by_label.topic = "nothing of the kind"
        unknown = await failure(stub.GetTopicMessages(by_label, metadata=mine))
        async with fresh_tenant(own_storage) as other:
            request = topics_pb2.GetClusterRequest(cluster_id=topic.topic_id)
            foreign = await failure(stub.GetCluster(request, metadata=other.raw.metadata()))

    whole = await events_of(own_tenant.raw, room, topic.topic_id)
    assert [period.name for period in listed.periods] == ["today"]
    assert [event.message.content for event in cluster.events] == whole[-2:]
    assert [event.message.content for event in [*first.events, *second.events]] == whole
    assert not second.next_page_token
    assert {unknown.reason, foreign.reason} == {"RESOURCE_NOT_FOUND"}


async def test_nothing_of_a_lost_lease_is_written(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    stored = await append(own_tenant.raw, "", *turns(HARBOUR))
    await due(own_postgres, own_tenant)
    [job] = await lease(own_storage)
    topic = pb.NewTopic(topic_id=stored.conversation_id, label="l", centroid=b"ab")
    apply = pb.ApplyTopicsRequest(
        seqs=[1, 2], versions=[1, 7], topic_numbers=[1, 1], topic_ids=[topic.topic_id],
        topics=[topic], replaces_all=True, embedding_model="m",
    )  # fmt: skip
    async with as_job(own_storage, job.token) as raw:
        await raw.call("ApplyTopics", apply)
        apply.versions[1] = 0
        wrong = await failure(raw.call("ApplyTopics", apply))
        apply.versions[1] = 1
        run_sql(own_postgres.admin_url, "UPDATE annals.jobs SET leased_until = now()")
        lost = await failure(raw.call("ApplyTopics", apply))

    found = await topics_of(own_tenant.raw, stored.conversation_id)
    assert [(topic.label, topic.event_count) for topic in found] == [("l", 1)]
    assert wrong.fields == ("versions[1]",)
    assert lost.reason == "CREDENTIALS_INVALID"


async def test_new_events_join_the_topics_there_are(
    own_tenant: Tenant,
    own_postgres: LocalPostgres,
    talk: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, _ = talk
    before = await topics_of(own_tenant.raw, room)
    monkeypatch.setattr(topic_work, "SMALL_EVENTS", 5)
    await append(own_tenant.raw, room, user("Is berth nine of the harbour free for the ferry?"))
    await clustered(own_tenant, own_postgres)

    found = {topic.topic_id: topic.event_count for topic in await topics_of(own_tenant.raw, room)}
    [together] = run_sql(own_postgres.admin_url, _TOGETHER, [room])

    assert set(found) == {topic.topic_id for topic in before}
    assert sorted(found.values()) == [5, 6]
    # Not clustered as a whole, which ten events were.
    assert together["event_count"] == 10


async def test_go_with_their_conversation(
    storage: RunningStorage, tenant: Tenant, postgres: LocalPostgres
) -> None:
    stored = await append(tenant.raw, "", user("soon gone"))
    room = stored.conversation_id
    await plant_topic(storage, tenant, room)

    erased = await tenant.client.erasure.conversation(room)
    verify = erasure_pb.VerifyErasureRequest(receipt_id=erased.receipt_id)
    answer = await tenant.raw.call("VerifyErasure", verify)

    counts = {each.kind: each.count for each in erased.counts}
    left = [
        table
        for table in ("topics", "topic_members", "topic_days", "topic_runs", "jobs")
        if run_sql(postgres.admin_url, f"SELECT FROM annals.{table} WHERE tenant_id = %s", [
            tenant.tenant_id])
    ]  # fmt: skip
    assert (counts["topics"], answer.verified, left) == (1, True, [])


async def test_the_command_lists_and_shows_them(
    storage: RunningStorage, tenant: Tenant, run: Run
) -> None:
    stored = await append(tenant.raw, "", user("what it is about"))
    topic_id = await plant_topic(storage, tenant, stored.conversation_id)

    listed = await run("topic", "list", stored.conversation_id)
    shown = await run("topic", "show", topic_id)
    events = await run("topic", "events", stored.conversation_id, "PLANTED", "--json")

    assert f"{topic_id}\t1\t" in listed.stdout
    assert "planted: 1 events" in shown.stdout
    assert "what it is about" in shown.stdout
    assert [event["message"]["content"] for event in events] == ["what it is about"]


async def test_a_result_is_written_under_its_lease_and_without_words_that_went(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    stored = await append(own_tenant.raw, "", *turns(HARBOUR))
    await due(own_postgres, own_tenant)
    [job] = await lease(own_storage)
    claim = read_token(job.token)
    assert claim is not None
    store = PostgresClustering(own_storage.adapters.database)
    tenant_id, room = UUID(own_tenant.tenant_id), UUID(stored.conversation_id)
    line = TopicLine(UUID(ids(stored)[0]), 1, HARBOUR[0])
    current, outdated = [
        NewTopic(topic_id, "harbour", (line,), (line,), b"ab", ((1, version),))
        for topic_id, version in ((uuid4(), 1), (uuid4(), 2))
    ]
    members = ((1, 1, current.topic_id), (2, 1, outdated.topic_id))
    found = WholeAssignment(members, (current, outdated), "m", "")

    with pytest.raises(JobLeaseLostError):
        await store.apply(tenant_id, JobLease("topics", room, b"of another"), found)
    before = await topics_of(own_tenant.raw, stored.conversation_id)
    await store.apply(tenant_id, JobLease("topics", room, claim.lease_hash), found)
    after = await topics_of(own_tenant.raw, stored.conversation_id)

    assert before == []
    assert {topic.topic_id: (topic.label, len(topic.samples)) for topic in after} == {
        str(current.topic_id): ("harbour", 1),
        str(outdated.topic_id): ("", 0),
    }
