"""Erasure: everything goes, everywhere, and a receipt proves it."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC
from typing import Any
from uuid import UUID

import grpc
import pytest
from tests.support.appending import append, ids, listed, state
from tests.support.changing import history, store
from tests.support.planting import (
    move_to_cold,
    new_marker,
    objects_with,
    plant,
    points_of,
    tables_with,
)
from tests.support.raw import Raw, failure
from tests.support.scratch import as_tenant, run
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.waiting import eventually

from annals.storage.v1 import erasure_service_pb2 as pb
from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.erasure import LATER_KINDS, RECEIPT_KINDS
from annals_storage.domain.indexing import OutboxEntry, OutboxKind
from annals_storage.indexer.mirror import Mirror
from annals_storage.postgres.outbox import PostgresOutbox

COLD = "cold"


def counts(receipt: pb.ErasureReceipt) -> dict[str, int]:
    return {item.kind: item.count for item in receipt.counts}


async def erase_event(raw: Raw, event_id: str) -> pb.ErasureReceipt:
    receipt: pb.ErasureReceipt = (
        await raw.call("EraseEvent", pb.EraseEventRequest(event_id=event_id))
    ).receipt
    return receipt


async def erase_conversation(raw: Raw, conversation_id: str) -> pb.ErasureReceipt:
    request = pb.EraseConversationRequest(conversation_id=conversation_id)
    receipt: pb.ErasureReceipt = (await raw.call("EraseConversation", request)).receipt
    return receipt


async def erase_user(raw: Raw, user_id: str) -> pb.ErasureReceipt:
    receipt: pb.ErasureReceipt = (
        await raw.call("EraseUser", pb.EraseUserRequest(user_id=user_id))
    ).receipt
    return receipt


async def verify(raw: Raw, receipt: pb.ErasureReceipt, **fields: Any) -> pb.VerifyErasureResponse:
    request = pb.VerifyErasureRequest(receipt_id=receipt.receipt_id, **fields)
    answer: pb.VerifyErasureResponse = await raw.call("VerifyErasure", request)
    return answer


class TestNothingIsLeft:
    async def test_of_a_conversation(
        self, storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        planted = await plant(tenant, new_marker())
        await move_to_cold(tenant, planted.conversation_id, until_seq=2)
        await eventually_logged(postgres, planted.marker)
        before = tables_with(postgres, planted.marker)
        cold_before = objects_with(storage.data_dir / COLD, planted.marker)

        receipt = await erase_conversation(tenant.raw, planted.conversation_id)

        assert before >= {
            "branches", "conversations", "events", "observations", "observation_payloads",
            "memories", "relationships", "attachments", "usage_daily", "provider_logs",
            "search_log",
        }  # fmt: skip
        assert cold_before
        assert tables_with(postgres, planted.marker) == set()
        assert objects_with(storage.data_dir / COLD, planted.marker) == []
        assert await points_of(storage, tenant) == 0
        found = counts(receipt)
        assert found["events"] == 6
        assert found["vectors"] >= 7
        assert found["cold_objects"] == found["cold_segments"] == 1
        for kind in ("observations", "observation_payloads", "memories", "relationships",
                     "attachments", "branches", "usage", "provider_logs", "search_log",
                     "append_requests", "chunks", "conversations"):  # fmt: skip
            assert found[kind] >= 1, kind
        assert (await verify(tenant.raw, receipt)).verified

    async def test_of_a_user(
        self, storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        planted = await plant(tenant, new_marker())
        await tenant.client.conversations.create(user_id=planted.user_id, title=planted.marker)
        await move_to_cold(tenant, planted.conversation_id)

        receipt = await erase_user(tenant.raw, planted.user_id)

        assert tables_with(postgres, planted.marker) == set()
        assert objects_with(storage.data_dir / COLD, planted.marker) == []
        assert await points_of(storage, tenant) == 0
        assert counts(receipt)["conversations"] == 2
        assert (
            receipt.subject
            == hashlib.sha256(f"{tenant.tenant_id}:{planted.user_id}".encode()).hexdigest()
        )
        assert (await verify(tenant.raw, receipt, user_id=planted.user_id)).verified

    async def test_of_a_tenant(
        self, storage: RunningStorage, postgres: LocalPostgres, admin: Raw
    ) -> None:
        async with fresh_tenant(storage) as doomed:
            planted = await plant(doomed, new_marker())
            await move_to_cold(doomed, planted.conversation_id)
            await admin.call("EraseTenant", await confirmed(postgres, doomed))

            refused = await failure(doomed.raw.call("ListConversations"))
            remaining = await eventually(
                lambda: rows_of_tenant(postgres, doomed), lambda names: "outbox" not in names
            )
            listed_ = await admin.call(
                "ListErasureReceipts", pb.ListErasureReceiptsRequest(tenant_id=doomed.tenant_id)
            )
            verified = await verify(admin, listed_.receipts[0], tenant_id=doomed.tenant_id)

        assert refused.code is grpc.StatusCode.UNAUTHENTICATED
        assert remaining == {"erasure_receipts"}
        assert tables_with(postgres, planted.marker) == set()
        assert objects_with(storage.data_dir / COLD, planted.marker) == []
        assert await points_of(storage, doomed) == 0
        assert verified.verified

    async def test_of_an_event(
        self, storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        marker = new_marker()
        stored = await append(tenant.raw, "", user("before"), user("after"))
        room = stored.conversation_id
        event = user(f"said {marker}", idempotency_key=f"key-{marker}", model=f"model-{marker}")
        event.provider_response_id = f"response-{marker}"
        event.metadata.update({marker: marker})
        turn = await store(tenant.raw, room, f"turn-{marker}", event)
        again = await store(tenant.raw, room, f"turn-{marker}", user(f"again {marker}"))
        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        before = await state(tenant.raw, room)

        receipt = await erase_event(tenant.raw, again.event.event_id)

        assert turn.event.event_id == again.event.event_id
        usage_only = tables_with(postgres, marker)
        assert usage_only <= {"usage_daily"}, "the sums by model stay"
        left = await listed(tenant, room, show_deleted=True)
        assert [event.seq for event in left] == [1, 2, 3]
        erased = left[2]
        assert erased.HasField("erase_time")
        assert not erased.message.content
        assert erased.turn_id == erased.model == ""
        after = await state(tenant.raw, room)
        assert after.event_count == before.event_count - 1
        assert after.message_count == before.message_count - 1
        assert after.token_count == before.token_count - again.event.token_count
        assert after.version > before.version
        assert await history(tenant.raw, again.event.event_id) == []
        assert counts(receipt)["observations"] == 2
        assert counts(receipt)["observation_payloads"] == 1
        assert counts(receipt)["vectors"] == 1
        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        assert await points_of(storage, tenant) == 2
        assert (await verify(tenant.raw, receipt)).verified

    async def test_of_an_event_in_cold_storage_and_the_others_keep_their_words(
        self, storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        marker = new_marker()
        stored = await append(tenant.raw, "", user("one"), user(f"two {marker}"), user("three"))
        await move_to_cold(tenant, stored.conversation_id)
        cold_before = objects_with(storage.data_dir / COLD, marker)

        receipt = await erase_event(tenant.raw, ids(stored)[1])

        assert len(cold_before) == 1
        assert objects_with(storage.data_dir / COLD, marker) == []
        assert tables_with(postgres, marker) == set()
        assert counts(receipt)["cold_objects"] == 1
        texts = [
            event.message.content
            for event in await listed(tenant, stored.conversation_id, show_deleted=True)
        ]
        assert texts == ["one", "", "three"]
        cold = run(
            postgres.admin_url,
            "SELECT count(*) AS n FROM annals.events "
            "WHERE conversation_id = %s AND cold_segment_id IS NOT NULL",
            [stored.conversation_id],
        )
        assert cold[0]["n"] == 2, "the segment was written anew"
        assert (await verify(tenant.raw, receipt)).verified


class TestEvents:
    async def test_erased_twice_are_counted_once(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"), user("two"))
        first = await erase_event(tenant.raw, ids(stored)[0])

        second = await erase_event(tenant.raw, ids(stored)[0])

        now = await state(tenant.raw, stored.conversation_id)
        assert (now.event_count, now.message_count) == (1, 1)
        assert counts(first)["events"] == 1
        assert counts(second)["events"] == 0
        assert (await verify(tenant.raw, second)).verified

    async def test_go_on_at_the_next_seq(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"), user("two"))
        await erase_event(tenant.raw, ids(stored)[1])

        later = await append(tenant.raw, stored.conversation_id, user("three"))

        assert later.events[0].seq == 3

    async def test_logs_that_may_quote_the_event_go_with_it(
        self, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        planted = await plant(tenant, new_marker())

        receipt = await erase_event(tenant.raw, planted.event_ids[0])

        assert counts(receipt)["provider_logs"] == 1
        assert counts(receipt)["attachments"] == 1
        assert "provider_logs" not in tables_with(postgres, planted.marker)


class TestReceipts:
    async def test_hold_every_kind_and_a_digest_anybody_can_compute(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"))

        receipt = await erase_conversation(tenant.raw, stored.conversation_id)

        assert set(counts(receipt)) == {*RECEIPT_KINDS, *LATER_KINDS}
        fields = {
            "receipt_id": receipt.receipt_id,
            "scope": "conversation",
            "subject": stored.conversation_id,
            "counts": counts(receipt),
            "start_time": micros(receipt.start_time),
            "complete_time": micros(receipt.complete_time),
        }
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert receipt.digest == hashlib.sha256(text.encode()).hexdigest()

    async def test_changed_afterwards_do_not_verify(
        self, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        receipt = await erase_user(tenant.raw, "nobody")
        before = await verify(tenant.raw, receipt, user_id="nobody")
        run(
            postgres.admin_url,
            "UPDATE annals.erasure_receipts SET counts = counts || '{\"events\": 7}' "
            "WHERE receipt_id = %s",
            [receipt.receipt_id],
        )

        after = await verify(tenant.raw, receipt, user_id="nobody")

        assert before.verified
        assert not after.digest_matches
        assert not after.verified
        assert {item.count for item in after.remaining} == {0}

    async def test_do_not_verify_when_something_came_back(self, tenant: Tenant) -> None:
        receipt = await erase_user(tenant.raw, "comes-back")
        await tenant.client.conversations.create(user_id="comes-back")

        found = await verify(tenant.raw, receipt, user_id="comes-back")

        assert not found.verified
        assert found.digest_matches
        assert {item.kind: item.count for item in found.remaining}["conversations"] == 1

    async def test_of_a_user_are_verified_with_that_user_only(self, tenant: Tenant) -> None:
        receipt = await erase_user(tenant.raw, "alice")

        refused = await failure(verify(tenant.raw, receipt, user_id="bob"))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("user_id",))

    async def test_are_listed_newest_first(self, tenant: Tenant) -> None:
        made = [(await erase_user(tenant.raw, f"u{i}")).receipt_id for i in range(3)]
        request = pb.ListErasureReceiptsRequest(page_size=2)
        first = await tenant.raw.call("ListErasureReceipts", request)
        request.page_token = first.next_page_token

        second = await tenant.raw.call("ListErasureReceipts", request)

        found = [one.receipt_id for one in (*first.receipts, *second.receipts)]
        assert found == list(reversed(made))
        assert not second.next_page_token

    async def test_of_interrupted_calls_are_finished_by_the_same_call(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        stored = await append(tenant.raw, "", user("one"), user("two"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                type(storage.adapters.generations.serving.vectors), "delete_conversation", breaks
            )
            refused = await failure(erase_conversation(tenant.raw, stored.conversation_id))
        [started] = (await tenant.raw.call("ListErasureReceipts")).receipts

        receipt = await erase_conversation(tenant.raw, stored.conversation_id)

        assert refused.reason == "DEPENDENCY_UNAVAILABLE"
        assert not started.HasField("complete_time")
        assert not started.digest
        assert receipt.receipt_id == started.receipt_id
        assert counts(receipt)["events"] == 2
        assert counts(receipt)["conversations"] == 1
        assert (await verify(tenant.raw, receipt)).verified
        gone = await failure(erase_conversation(tenant.raw, stored.conversation_id))
        assert gone.reason == "RESOURCE_NOT_FOUND"


class TestScopes:
    async def test_a_deleted_conversation_is_erased(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"))
        await tenant.client.conversations.delete(stored.conversation_id)

        receipt = await erase_conversation(tenant.raw, stored.conversation_id)

        assert counts(receipt)["events"] == 1

    async def test_others_conversations_stay(self, tenant: Tenant, other_tenant: Tenant) -> None:
        mine = await append(tenant.raw, "", user("mine"))
        theirs = await append(other_tenant.raw, "", user("theirs"))
        await erase_conversation(tenant.raw, mine.conversation_id)

        refused = await failure(erase_conversation(tenant.raw, theirs.conversation_id))

        assert refused.reason == "RESOURCE_NOT_FOUND"
        assert len(await listed(other_tenant, theirs.conversation_id)) == 1

    async def test_a_tenant_is_erased_under_its_own_name_only(
        self, storage: RunningStorage, postgres: LocalPostgres, admin: Raw
    ) -> None:
        async with fresh_tenant(storage) as spared:
            request = await confirmed(postgres, spared)
            request.confirm_display_name = "another"

            refused = await failure(admin.call("EraseTenant", request))

            assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("confirm_display_name",))
            assert (await spared.raw.call("GetCaller")).tenant_id == spared.tenant_id

    async def test_needs_the_scope(self, tenant: Tenant, admin: Raw) -> None:
        key = await tenant.client.keys.create("data only", scopes=["data"])
        metadata = (("authorization", f"Bearer {key.api_key_secret}"),)
        request = pb.EraseUserRequest(user_id="u")

        by_data = await failure(tenant.raw.call("EraseUser", request, metadata=metadata))
        by_admin = await failure(admin.call("EraseUser", request))
        by_tenant = await failure(
            tenant.raw.call(
                "EraseTenant",
                pb.EraseTenantRequest(tenant_id=tenant.tenant_id, confirm_display_name="x"),
            )
        )

        assert {by_data.reason, by_admin.reason, by_tenant.reason} == {"SCOPE_MISSING"}


class TestRaces:
    async def test_an_indexer_that_read_before_the_erasure_leaves_nothing(
        self, storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        """It writes chunks and points after the erasure, as a slow worker would."""
        stored = await append(tenant.raw, "", user("a slow worker reads this"))
        event_id, room = UUID(ids(stored)[0]), UUID(stored.conversation_id)
        tenant_id = UUID(tenant.tenant_id)
        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        outbox = SlowOutbox(storage)
        outbox.kept = await outbox.inner.get_indexable(tenant_id, [event_id])
        await erase_conversation(tenant.raw, stored.conversation_id)
        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        slow = OutboxEntry(tenant_id, OutboxKind.EVENT, event_id, room, generation=1, attempts=1)

        await outbox.mirror().refresh([slow])
        resurrected = await points_of(storage, tenant)
        await outbox.inner.acknowledge("slow", [slow])

        await eventually(lambda: points_of(storage, tenant), lambda points: points == 0)
        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        assert resurrected == 1, "the race was real"
        chunks = run(
            postgres.admin_url,
            "SELECT count(*) AS n FROM annals.chunks WHERE event_id = %s",
            [event_id],
        )
        assert chunks[0]["n"] == 0

    @pytest.mark.parametrize("scope", ["event", "conversation"])
    async def test_an_indexer_that_still_holds_its_lease_leaves_nothing(
        self, storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant, scope: str
    ) -> None:
        """Its acknowledgement comes too late to count: the key was bumped."""
        stored = await append(tenant.raw, "", user("a slow worker reads this"))
        event_id, room = UUID(ids(stored)[0]), UUID(stored.conversation_id)
        tenant_id = UUID(tenant.tenant_id)
        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        outbox = SlowOutbox(storage)
        outbox.kept = await outbox.inner.get_indexable(tenant_id, [event_id])
        slow = OutboxEntry(tenant_id, OutboxKind.EVENT, event_id, room, generation=1, attempts=1)
        run(
            postgres.admin_url,
            "INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, lease_owner, "
            "available_at) VALUES (%s, 'event', %s, %s, 'slow', now() + interval '1 hour')",
            [tenant_id, event_id, room],
        )
        if scope == "event":
            await erase_event(tenant.raw, ids(stored)[0])
        else:
            await erase_conversation(tenant.raw, stored.conversation_id)
        await eventually(tenant.client.index.status, lambda now: now.pending_count <= 1)

        await outbox.mirror().refresh([slow])
        await outbox.inner.acknowledge("slow", [slow])

        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        assert await points_of(storage, tenant) == 0


class TestIsolation:
    def test_functions_of_the_owner_reach_the_callers_tenant_only(
        self, postgres: LocalPostgres, rows_of_two: tuple[str, str, str]
    ) -> None:
        mine, theirs, their_event = rows_of_two
        erase = "SELECT annals.erase_observations(ARRAY[%s::uuid]) AS n"
        forget = "SELECT annals.forget_observer('their-user', '{}') AS n"

        as_me = [
            as_tenant(postgres.app_url, mine, erase, [their_event])[0]["n"],
            as_tenant(postgres.app_url, mine, forget)[0]["n"],
            as_tenant(postgres.app_url, None, erase, [their_event])[0]["n"],
        ]
        as_them = [
            as_tenant(postgres.app_url, theirs, forget)[0]["n"],
            as_tenant(postgres.app_url, theirs, erase, [their_event])[0]["n"],
        ]

        assert as_me == [0, 0, 0]
        assert as_them == [1, 1]


@pytest.fixture
async def rows_of_two(
    postgres: LocalPostgres, tenant: Tenant, other_tenant: Tenant
) -> tuple[str, str, str]:
    """Two tenants and an event of the second that `their-user` is said to have stored."""
    stored = await append(other_tenant.raw, "", user("theirs"))
    run(
        postgres.admin_url,
        "UPDATE annals.observations SET user_id = 'their-user' WHERE event_id = %s",
        [ids(stored)[0]],
    )
    return tenant.tenant_id, other_tenant.tenant_id, ids(stored)[0]


class SlowOutbox:
    """The outbox as a worker sees it that read an event long ago."""

    def __init__(self, storage: RunningStorage) -> None:
        self.inner = PostgresOutbox(storage.adapters.database)
        self.kept: dict[UUID, Any] = {}
        self._storage = storage

    def mirror(self) -> Mirror:
        adapters = self._storage.adapters
        outbox = PostgresOutbox(adapters.database)
        kept = self.kept

        async def get_indexable(_tenant_id: UUID, _event_ids: Any) -> dict[UUID, Any]:
            return kept

        outbox.get_indexable = get_indexable  # type: ignore[method-assign]
        return Mirror(
            outbox=outbox,
            vectors=adapters.vectors,
            embedder=adapters.embedder,
            sparse=adapters.sparse,
        )


async def breaks(*_: Any) -> None:
    from annals_common.errors import DependencyUnavailableError

    raise DependencyUnavailableError("vector engine")


async def confirmed(postgres: LocalPostgres, tenant: Tenant) -> pb.EraseTenantRequest:
    [row] = run(
        postgres.admin_url,
        "SELECT display_name FROM annals.tenants WHERE tenant_id = %s",
        [tenant.tenant_id],
    )
    return pb.EraseTenantRequest(
        tenant_id=tenant.tenant_id, confirm_display_name=row["display_name"]
    )


async def rows_of_tenant(postgres: LocalPostgres, tenant: Tenant) -> set[str]:
    """Every table with a row of the tenant."""
    names = run(
        postgres.admin_url,
        "SELECT DISTINCT table_name FROM information_schema.columns "
        "WHERE table_schema = 'annals' AND column_name = 'tenant_id'",
    )
    query = "SELECT EXISTS (SELECT FROM annals.{} WHERE tenant_id = %s) AS found"
    return {
        row["table_name"]
        for row in names
        if run(postgres.admin_url, query.format(row["table_name"]), [tenant.tenant_id])[0]["found"]
    }


async def eventually_logged(postgres: LocalPostgres, marker: str) -> None:
    """Searches are logged behind the answer."""

    async def names() -> set[str]:
        return tables_with(postgres, marker)

    await eventually(names, lambda found: "search_log" in found)


def micros(moment: Any) -> str:
    return moment.ToDatetime(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
