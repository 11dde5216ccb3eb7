"""SummaryService: what is kept, what outdates it, what is refused."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.support.appending import append, ids
from tests.support.raw import failure
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.summaries import put, put_request, ranges_of, summary_of

from annals.storage.v1 import erasure_service_pb2 as erasure_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import summary_service_pb2 as pb
from annals_client import user

BLOCKS = [(1, 1, 2), (1, 3, 4), (1, 5, 6)]


async def summarised(tenant: Tenant) -> tuple[str, list[str]]:
    """A conversation of six events with a summary of every two, and the ids of its events."""
    stored = await append(tenant.raw, "", *(user(f"word {number}") for number in range(6)))
    found = ids(stored)
    await put(
        tenant,
        stored.conversation_id,
        *(summary_of(first, last, cites=found[first - 1]) for _, first, last in BLOCKS),
    )
    return stored.conversation_id, found


class TestPut:
    async def test_is_read_as_it_was_stored(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("hi"))
        room, event_id = stored.conversation_id, ids(stored)[0]
        [kept] = await put(tenant, room, summary_of(1, 1, cites=event_id))

        request = pb.GetSummaryRequest(summary_id=kept.summary_id)
        found = (await tenant.raw.call("GetSummary", request)).summary

        assert (found.text, found.version, found.branch) == ("user: hi", 1, 1)
        assert (found.conversation_id, found.citations[0].event_id) == (room, event_id)
        assert kept.text == ""

    async def test_takes_the_place_of_the_former_one(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"), user("two"))
        room = stored.conversation_id
        [first] = await put(tenant, room, summary_of(1, 1))

        [second] = await put(tenant, room, summary_of(1, 2))

        assert (second.summary_id, second.version) == (first.summary_id, 2)
        assert await ranges_of(tenant, room) == [(1, 1, 2)]

    async def test_is_refused_when_an_event_changed_since_it_was_read(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"), user("two"))
        room = stored.conversation_id
        request = await put_request(tenant, room, summary_of(2, 2), summary_of(1, 1))
        edit = event_pb.EditEventRequest(event_id=ids(stored)[0], event=user("other"))
        await tenant.raw.call("EditEvent", edit)

        refused = await failure(tenant.raw.call("PutSummaries", request))

        assert refused.reason == "SUMMARY_SOURCE_CHANGED"
        assert dict(refused.metadata) == {"first_seq": "1", "last_seq": "1"}
        assert await ranges_of(tenant, room) == []

    async def test_cites_no_event_of_elsewhere(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"))
        other = await append(tenant.raw, "", user("two"))
        request = await put_request(
            tenant, stored.conversation_id, summary_of(1, 1, cites=ids(other)[0])
        )

        refused = await failure(tenant.raw.call("PutSummaries", request))

        assert refused.reason == "RESOURCE_NOT_FOUND"

    @pytest.mark.parametrize(
        ("field", "wrong"),
        [
            ("summaries[0].level", {"level": 0}),
            ("summaries[0].last_seq", {"last_seq": 0}),
            ("summaries[0].text", {"text": ""}),
            ("summaries[0].quality_score", {"quality_score": 1.5}),
            ("summaries[0].provider", {"provider": ""}),
            ("summaries[0].height", {"height": 10}),
            ("summaries[0].citations[0].seq", {"citations": [pb.SummaryCitation(seq=9)]}),
        ],
    )
    async def test_what_makes_no_sense_is_named(
        self, tenant: Tenant, field: str, wrong: dict[str, Any]
    ) -> None:
        stored = await append(tenant.raw, "", user("one"))
        item = summary_of(1, 1, source_version="x")
        item.MergeFrom(pb.Summary(**{k: v for k, v in wrong.items() if k == "citations"}))
        for name, value in wrong.items():
            if name != "citations":
                setattr(item, name, value)
        request = pb.PutSummariesRequest(conversation_id=stored.conversation_id, summaries=[item])

        refused = await failure(tenant.raw.call("PutSummaries", request))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))

    async def test_runs_are_recorded_with_it_and_alone_when_they_failed(
        self, tenant: Tenant
    ) -> None:
        stored = await append(tenant.raw, "", user("one"))
        room = stored.conversation_id
        run = pb.SummaryRun(
            provider="test", model="m", status=pb.SUMMARY_RUN_STATUS_COMPLETED, summary_count=1,
            start_time=Timestamp(seconds=1),
        )  # fmt: skip
        await put(tenant, room, summary_of(1, 1), run=run)
        failed = pb.SummaryRun(
            provider="test", model="m", status=pb.SUMMARY_RUN_STATUS_FAILED, error="too slow",
            start_time=Timestamp(seconds=2),
        )  # fmt: skip
        await put(tenant, room, run=failed)

        request = pb.ListSummaryRunsRequest(conversation_id=room, page_size=1)
        first = await tenant.raw.call("ListSummaryRuns", request)
        request.page_token = first.next_page_token
        second = await tenant.raw.call("ListSummaryRuns", request)

        found = [*first.runs, *second.runs]
        assert [(item.error, item.summary_count) for item in found] == [("too slow", 0), ("", 1)]
        assert second.next_page_token == ""


class TestOutdated:
    @pytest.mark.parametrize("change", ["EditEvent", "DeleteEvent"])
    async def test_a_change_hides_what_was_made_of_the_event_alone(
        self, tenant: Tenant, change: str
    ) -> None:
        room, found = await summarised(tenant)
        await put(tenant, room, summary_of(1, 6, height=1))
        requests: dict[str, Any] = {
            "EditEvent": event_pb.EditEventRequest(event_id=found[2], event=user("other")),
            "DeleteEvent": event_pb.DeleteEventRequest(event_id=found[2]),
        }

        await tenant.raw.call(change, requests[change])

        assert await ranges_of(tenant, room) == [(1, 1, 2), (1, 5, 6)]

    async def test_an_append_outdates_nothing(self, tenant: Tenant) -> None:
        room, _ = await summarised(tenant)

        await append(tenant.raw, room, user("more"))

        assert await ranges_of(tenant, room) == BLOCKS

    async def test_an_erasure_takes_it_away_and_its_receipt_verifies(self, tenant: Tenant) -> None:
        room, found = await summarised(tenant)

        erased = await tenant.raw.call(
            "EraseEvent", erasure_pb.EraseEventRequest(event_id=found[2])
        )
        await put(tenant, room, summary_of(3, 4, cites=""))
        verified = await tenant.raw.call(
            "VerifyErasure",
            erasure_pb.VerifyErasureRequest(receipt_id=erased.receipt.receipt_id),
        )

        assert {item.kind: item.count for item in erased.receipt.counts}["summaries"] == 1
        assert verified.verified
        assert await ranges_of(tenant, room) == BLOCKS

    async def test_a_conversation_goes_with_its_summaries(self, tenant: Tenant) -> None:
        room, _ = await summarised(tenant)

        erased = await tenant.raw.call(
            "EraseConversation", erasure_pb.EraseConversationRequest(conversation_id=room)
        )
        verified = await tenant.raw.call(
            "VerifyErasure",
            erasure_pb.VerifyErasureRequest(receipt_id=erased.receipt.receipt_id),
        )

        assert {item.kind: item.count for item in erased.receipt.counts}["summaries"] == 3
        assert verified.verified


class TestBranches:
    async def test_a_branch_has_what_was_made_before_it_left(self, tenant: Tenant) -> None:
        room, found = await summarised(tenant)
        revert = event_pb.RevertToEventRequest(conversation_id=room, event_id=found[3])
        await tenant.raw.call("RevertToEvent", revert)
        await append(tenant.raw, room, user("another way"))

        await put(tenant, room, summary_of(3, 7), summary_of(1, 4, height=1))

        assert await ranges_of(tenant, room) == [
            (1, 1, 2), (1, 1, 4), (1, 3, 4), (2, 3, 7)
        ]  # fmt: skip
        assert await ranges_of(tenant, room, branch=1, heights=[0]) == BLOCKS


class TestList:
    async def test_pages_and_narrows(self, tenant: Tenant) -> None:
        room, _ = await summarised(tenant)
        request = pb.ListSummariesRequest(
            conversation_id=room, first_seq=3, page_size=1, view=pb.SUMMARY_VIEW_BASIC
        )

        first = await tenant.raw.call("ListSummaries", request)
        request.page_token = first.next_page_token
        second = await tenant.raw.call("ListSummaries", request)

        found = [*first.summaries, *second.summaries]
        assert [item.first_seq for item in found] == [3, 5]
        assert {item.text for item in found} == {""}
        assert second.next_page_token == ""
        assert await ranges_of(tenant, room, last_seq=2) == [(1, 1, 2)]
        assert await ranges_of(tenant, room, levels=[pb.SUMMARY_LEVEL_DETAILED]) == []

    async def test_of_others_are_not_to_be_had(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        room, _ = await summarised(tenant)
        async with fresh_tenant(storage) as stranger:
            refused = await failure(ranges_of(stranger, room))
            missing = await failure(ranges_of(stranger, str(uuid4())))

        assert refused.reason == missing.reason == "RESOURCE_NOT_FOUND"

    async def test_deleted_ones_are_gone(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"))
        [kept] = await put(tenant, stored.conversation_id, summary_of(1, 1))

        request = pb.DeleteSummaryRequest(summary_id=kept.summary_id)
        await tenant.raw.call("DeleteSummary", request)

        assert await ranges_of(tenant, stored.conversation_id) == []
        again = await failure(tenant.raw.call("DeleteSummary", request))
        assert again.reason == "RESOURCE_NOT_FOUND"
