"""AppendEvents: what goes in comes out, all or none, once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from uuid import UUID, uuid4

import grpc
import pytest
import tiktoken
from tests.support.appending import (
    append,
    check_counters,
    empty_conversation,
    ids,
    listed,
    seqs,
    state,
)
from tests.support.raw import failure, outcome
from tests.support.storage import Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import assistant, error, message, system, tool_call, tool_result, user
from annals_common.tokenizers import load_encoding

MEBIBYTE = 1024 * 1024
ODD_JSON = '{ "b" :\t1e400,\n "a": 123456789012345678901234567890, "a": 0.10, "é": "\\u00e9" }  '
BODIES = {
    "message": message(
        "user", "Grüezi 👩‍👩‍👧‍👦 日本語 \u202eabc\u200b\r\n\tend ", author_name="Zoë"
    ),
    "message of a tool": message("tool", "ok"),
    "message of the system": message("system", "Be brief."),
    "empty message": assistant(""),
    "tool call": tool_call("call_1", "search", ODD_JSON),
    "tool call without input": tool_call("call_1", "search"),
    "system": system("truncated"),
    "error": error("rate_limit", "slow down ⏳"),
    "error without words": error("rate_limit"),
}


async def test_appended_events_come_back_in_order(tenant: Tenant) -> None:
    stored = await tenant.client.events.append("", [user("hello"), assistant("hi")])

    found = await listed(tenant, stored.conversation_id)

    assert [event.seq for event in found] == [1, 2]
    assert [event.message.content for event in found] == ["hello", "hi"]


class TestRoundTrip:
    @pytest.mark.parametrize("name", BODIES)
    async def test_body_is_kept_exactly(self, tenant: Tenant, name: str) -> None:
        sent = BODIES[name]
        conversation_id = await empty_conversation(tenant)

        stored = await append(tenant.raw, conversation_id, sent)

        event = await tenant.client.events.get(stored.events[0].event_id)
        kind = sent.WhichOneof("body")
        expected = getattr(sent, kind)
        if name == "tool call without input":
            expected = res.ToolCallBody(tool_call_id="call_1", tool_name="search", input_json="{}")
        assert event.WhichOneof("body") == kind
        assert getattr(event, kind) == expected
        assert event.type == res.EventType.Value(f"EVENT_TYPE_{kind.upper()}")

    @pytest.mark.parametrize("result", ["", ODD_JSON, "not { json", "✓ 完了"])
    async def test_tool_result_is_kept_exactly(self, tenant: Tenant, result: str) -> None:
        stored = await append(
            tenant.raw, "", tool_call("c", "t"), tool_result("c", result, is_error=True)
        )

        event = await tenant.client.events.get(stored.events[1].event_id)

        assert event.tool_result == res.ToolResultBody(
            tool_call_id="c", tool_name="t", result=result, is_error=True
        )

    async def test_everything_around_the_body_is_kept(self, tenant: Tenant) -> None:
        moment = datetime(2021, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)
        metadata = {
            "null": None, "true": True, "int": 7, "big": 2.0**60, "float": 0.1, "tiny": 5e-324,
            "text": "日本 👍", "list": [[], {}, [None]], "map": {"": {"x": []}},
        }  # fmt: skip
        first = await append(tenant.raw, "", user("question"))
        sent = assistant(
            "answer",
            model="gpt-4o",
            provider_response_id="resp_1",
            usage=res.Usage(input_tokens=2**40, output_tokens=2, cached_input_tokens=1),
            parent_event_id=ids(first)[0],
            metadata=metadata,
            event_time=moment,
        )

        stored = await append(tenant.raw, first.conversation_id, sent)

        event = await tenant.client.events.get(ids(stored)[0])
        for field in ("model", "provider_response_id", "usage", "parent_event_id", "metadata"):
            assert getattr(event, field) == getattr(sent, field), field
        assert event.event_time.ToDatetime(tzinfo=UTC) == moment
        assert event.create_time == stored.events[0].create_time
        assert UUID(event.event_id).version == 7

    async def test_event_time_is_the_time_of_storing_unless_given(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("now"))

        event = await tenant.client.events.get(ids(stored)[0])

        assert event.event_time == event.create_time

    @pytest.mark.parametrize("year", [1, 1969, 9999])
    async def test_event_time_may_be_any_year(self, tenant: Tenant, year: int) -> None:
        moment = datetime(year, 1, 1, 0, 0, 0, 1, tzinfo=UTC)

        stored = await append(tenant.raw, "", user("then", event_time=moment))

        event = await tenant.client.events.get(ids(stored)[0])
        assert event.event_time.ToDatetime(tzinfo=UTC) == moment

    async def test_tokens_are_counted_of_the_words_in_o200k(self, tenant: Tenant) -> None:
        encoding: tiktoken.Encoding = load_encoding("o200k_base")
        texts = ["Grüezi 👩‍👩‍👧‍👦 日本語", "", "<|endoftext|>"]

        stored = await append(tenant.raw, "", *map(user, texts))

        expected = [len(encoding.encode_ordinary(text)) for text in texts]
        assert [event.token_count for event in stored.events] == expected

    async def test_a_mebibyte_of_content_fits(self, tenant: Tenant) -> None:
        # Of spaces, because nothing is embedded of them: the indexer is not what is tested here.
        content = " " * MEBIBYTE

        stored = await append(tenant.raw, "", user(content))

        [event] = await listed(tenant, stored.conversation_id)
        assert event.message.content == content

    async def test_a_byte_more_is_refused(self, tenant: Tenant) -> None:
        conversation_id = await empty_conversation(tenant)
        content = "日" * (MEBIBYTE // 3) + "xy"

        refused = await failure(append(tenant.raw, conversation_id, user(content)))

        assert (refused.code, refused.reason) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "LIMIT_EXCEEDED",
        )
        assert refused.fields == ("events[0].message.content",)
        assert dict(refused.metadata)["actual"] == str(MEBIBYTE + 1)
        assert (await state(tenant.raw, conversation_id)).version == 1


class TestBatches:
    async def test_of_a_thousand_are_stored(self, tenant: Tenant) -> None:
        contents = [f" {number}" for number in range(1000)]

        stored = await append(tenant.raw, "", *map(system, contents))

        assert seqs(stored) == list(range(1, 1001))
        assert stored.last_seq == 1000
        events = await check_counters(tenant, stored.conversation_id)
        assert [event.system.content for event in events] == contents
        assert [event.event_id for event in events] == ids(stored)

    async def test_of_a_thousand_and_one_are_refused(self, tenant: Tenant) -> None:
        refused = await failure(append(tenant.raw, "", *[system("")] * 1001))

        assert (refused.reason, refused.fields) == ("LIMIT_EXCEEDED", ("events",))
        assert dict(refused.metadata) == {
            "field": "events",
            "limit": "1000",
            "actual": "1001",
            "unit": "items",
        }
        assert [c async for c in tenant.client.conversations.list()] == []

    @pytest.mark.parametrize(
        "bad",
        [
            pytest.param(pb.NewEvent(), id="no body"),
            pytest.param(tool_result("nowhere", "x"), id="result without call"),
            pytest.param(user("x", parent_event_id=str(uuid4())), id="unknown parent"),
            pytest.param(tool_call("c", "t", "{,}"), id="invalid JSON"),
        ],
    )
    async def test_with_one_bad_event_store_nothing(self, tenant: Tenant, bad: pb.NewEvent) -> None:
        stored = await append(tenant.raw, "", user("before"))
        before = await state(tenant.raw, stored.conversation_id)

        await failure(append(tenant.raw, stored.conversation_id, user("a"), bad, user("b")))

        assert await state(tenant.raw, stored.conversation_id) == before
        assert len(await listed(tenant, stored.conversation_id)) == 1

    async def test_to_a_missing_conversation_are_refused(self, tenant: Tenant) -> None:
        missing = str(uuid4())

        refused = await failure(append(tenant.raw, missing, user("x")))

        assert refused.code is grpc.StatusCode.NOT_FOUND
        assert refused.metadata == (("id", missing), ("resource", "conversation"))

    async def test_bump_version_and_activity(self, tenant: Tenant) -> None:
        conversation_id = await empty_conversation(tenant)

        stored = await append(tenant.raw, conversation_id, user("a"), system("b"))

        now = await state(tenant.raw, conversation_id)
        assert (now.version, now.event_count, now.message_count) == (2, 2, 1)
        assert now.last_event_time == stored.events[0].create_time


class TestToolCalls:
    async def test_result_takes_its_name_from_the_call_in_an_earlier_append(
        self, tenant: Tenant
    ) -> None:
        first = await append(tenant.raw, "", tool_call("c", "weather", {"city": "Bern"}))

        stored = await append(tenant.raw, first.conversation_id, tool_result("c", "sunny"))

        event = await tenant.client.events.get(ids(stored)[0])
        assert event.tool_result.tool_name == "weather"

    async def test_result_keeps_a_name_of_its_own(self, tenant: Tenant) -> None:
        stored = await append(
            tenant.raw, "", tool_call("c", "weather"), tool_result("c", "x", tool_name="other")
        )

        event = await tenant.client.events.get(ids(stored)[1])
        assert event.tool_result.tool_name == "other"

    @pytest.mark.parametrize("position", ["elsewhere", "later in the call"])
    async def test_result_without_an_earlier_call_is_refused(
        self, tenant: Tenant, position: str
    ) -> None:
        await append(tenant.raw, "", tool_call("c", "weather"))
        later = [tool_call("c", "weather")] if position == "later in the call" else []

        refused = await failure(append(tenant.raw, "", tool_result("c", "x"), *later))

        assert refused.code is grpc.StatusCode.FAILED_PRECONDITION
        assert refused.reason == "TOOL_CALL_NOT_FOUND"
        assert refused.fields == ("events[0].tool_result.tool_call_id",)
        assert dict(refused.metadata)["tool_call_id"] == "c"


class TestParents:
    async def test_may_be_an_earlier_event_of_the_same_call(self, tenant: Tenant) -> None:
        parent_id = str(uuid4())

        stored = await append(
            tenant.raw, "", user("q", event_id=parent_id), assistant("a", parent_event_id=parent_id)
        )

        event = await tenant.client.events.get(ids(stored)[1])
        assert event.parent_event_id == parent_id

    @pytest.mark.parametrize("where", ["itself", "later", "another conversation"])
    async def test_must_come_before_in_the_same_conversation(
        self, tenant: Tenant, where: str
    ) -> None:
        elsewhere = ids(await append(tenant.raw, "", user("x")))[0]
        mine, later = str(uuid4()), str(uuid4())
        parent_id = {"itself": mine, "later": later, "another conversation": elsewhere}[where]

        refused = await failure(
            append(
                tenant.raw,
                "",
                user("a", event_id=mine, parent_event_id=parent_id),
                user("b", event_id=later),
            )
        )

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("events[0].parent_event_id",))

    async def test_must_not_be_an_id_that_a_replay_leaves_unused(self, tenant: Tenant) -> None:
        first = await append(tenant.raw, "", user("q", idempotency_key="q"))
        unused = str(uuid4())

        refused = await failure(
            append(
                tenant.raw,
                first.conversation_id,
                user("q", idempotency_key="q", event_id=unused),
                assistant("a", parent_event_id=unused),
            )
        )

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("events[1].parent_event_id",))
        assert (await state(tenant.raw, first.conversation_id)).last_seq == 1


class TestClientSuppliedIds:
    async def test_are_kept(self, tenant: Tenant) -> None:
        event_id = str(uuid4())

        stored = await append(tenant.raw, "", user("mine", event_id=event_id))

        assert ids(stored) == [event_id]

    async def test_that_exist_are_refused(self, tenant: Tenant) -> None:
        event_id = str(uuid4())
        first = await append(tenant.raw, "", user("mine", event_id=event_id))

        refused = await failure(
            append(tenant.raw, first.conversation_id, user("other", event_id=event_id))
        )

        assert refused.code is grpc.StatusCode.ALREADY_EXISTS
        assert refused.metadata == (("id", event_id), ("resource", "event"))
        assert (await state(tenant.raw, first.conversation_id)).event_count == 1

    @pytest.mark.parametrize("field", ["event_id", "idempotency_key"])
    async def test_used_twice_in_a_call_are_refused(self, tenant: Tenant, field: str) -> None:
        value = {field: str(uuid4())}

        refused = await failure(append(tenant.raw, "", user("a", **value), user("b", **value)))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (f"events[1].{field}",))

    async def test_of_another_tenant_do_not_collide(
        self, tenant: Tenant, other_tenant: Tenant
    ) -> None:
        event_id = str(uuid4())
        await append(other_tenant.raw, "", user("theirs", event_id=event_id))

        await append(tenant.raw, "", user("mine", event_id=event_id))

        assert (await tenant.client.events.get(event_id)).message.content == "mine"
        assert (await other_tenant.client.events.get(event_id)).message.content == "theirs"

    async def test_raced_for_from_two_conversations_go_to_one(self, tenant: Tenant) -> None:
        event_id = str(uuid4())
        rooms = [await empty_conversation(tenant) for _ in range(8)]

        outcomes = await asyncio.gather(
            *[outcome(append(tenant.raw, room, user("x", event_id=event_id))) for room in rooms]
        )

        won = [one for one in outcomes if isinstance(one, pb.AppendEventsResponse)]
        lost = [one for one in outcomes if not isinstance(one, pb.AppendEventsResponse)]
        assert len(won) == 1
        assert {one.reason for one in lost} == {"RESOURCE_ALREADY_EXISTS"}
