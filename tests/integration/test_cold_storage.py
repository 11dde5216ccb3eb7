"""Cold storage: words go into objects and come back without anybody noticing."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from google.protobuf.message import Message
from pydantic import SecretStr
from tests.support.appending import append, blank, ids, listed
from tests.support.changing import edit, history
from tests.support.planting import move_to_cold, new_marker, objects_with, plant, tables_with
from tests.support.raw import failure
from tests.support.s3 import ObjectServer
from tests.support.scratch import ScratchDatabase, run
from tests.support.storage import (
    RunningStorage,
    Tenant,
    fresh_tenant,
    running_storage,
    storage_settings,
)
from tests.support.waiting import eventually

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import lifecycle_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import tool_call, tool_result, user
from annals_local.postgres import LocalPostgres
from annals_storage.cold.objects import FsspecObjects
from annals_storage.cold.warmed import warmed
from annals_storage.commands.cold_storage import ColdStorage
from annals_storage.domain.cold_storage import (
    ColdWords,
    SegmentDamagedError,
    decode,
    encode,
    folder_of,
)
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.worker import Indexer
from annals_storage.postgres.outbox import PostgresOutbox


@asynccontextmanager
async def service(
    postgres: LocalPostgres | ScratchDatabase, folder: Path, **settings: object
) -> AsyncIterator[RunningStorage]:
    """A service with cold storage of its own."""
    async with running_storage(storage_settings(postgres, folder, **settings)) as it:
        yield it


@pytest.fixture(scope="module")
def postgres(own_postgres: LocalPostgres) -> LocalPostgres:
    """Apart from the session's: these services index, each into an engine of its own."""
    return own_postgres


@pytest.fixture(scope="module", params=["files", "objects"])
async def cold(
    request: pytest.FixtureRequest,
    postgres: LocalPostgres,
    object_server: ObjectServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[RunningStorage]:
    """The service over files, then over an S3-compatible server."""
    folder = tmp_path_factory.mktemp("cold-data")
    settings: dict[str, object] = {}
    if request.param == "objects":
        settings = {
            "cold_storage_url": object_server.url,
            "cold_storage_options": SecretStr(object_server.options),
        }
    async with service(postgres, folder, **settings) as it:
        yield it


@pytest.fixture
async def owner(cold: RunningStorage) -> AsyncIterator[Tenant]:
    async with fresh_tenant(cold) as it:
        yield it


async def mixed_conversation(tenant: Tenant) -> str:
    """Every kind of event, metadata and odd characters among them."""
    odd = user('line\nbreak \u2028 \U0001f98a \\u0041 "quoted" \t')
    odd.metadata.update({"n": 1.5, "list": [1, {"deep": None}], "s": "\u2028"})
    stored = await append(
        tenant.raw,
        "",
        odd,
        tool_call("c1", "search", '{"q": "heron feathers"}'),
        tool_result("c1", "found the lighthouse keeper"),
        event_pb.NewEvent(system=res.SystemBody(content="be kind")),
        event_pb.NewEvent(error=res.ErrorBody(error_type="T", error_message="it broke")),
        user("the lighthouse keeper counts heron feathers"),
    )
    # Else the indexer might be the first to read what is cold, and have it kept in memory.
    await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
    return stored.conversation_id


def warm_words(postgres: LocalPostgres, conversation_id: str) -> int:
    """How many events have words in PostgreSQL."""
    [row] = run(
        postgres.admin_url,
        "SELECT count(*) AS n FROM annals.events WHERE conversation_id = %s AND "
        "coalesce(content, tool_input, tool_result, error_message, metadata::text) IS NOT NULL",
        [conversation_id],
    )
    return int(row["n"])


async def everything_read(tenant: Tenant, room: str, event_ids: list[str]) -> list[Message]:
    """Every read that returns events."""
    one = event_pb.GetEventRequest(conversation_id=room, event_id=event_ids[0])
    by_seq = event_pb.GetEventRequest(conversation_id=room, seq=2)
    several = event_pb.BatchGetEventsRequest(event_ids=event_ids)
    pages = event_pb.ListEventsRequest(conversation_id=room, page_size=4)
    found = [
        await tenant.raw.call("GetEvent", one),
        await tenant.raw.call("GetEvent", by_seq),
        await tenant.raw.call("BatchGetEvents", several),
        await tenant.raw.call("ListEvents", pages),
        *[event async for event in tenant.client.events.list(room)],
        *(await history(tenant.raw, event_ids[0])),
    ]
    search = await tenant.client.search.events("lighthouse keeper heron feathers")
    return [*found, *(hit.event for hit in search.hits)]


def words(event: res.Event) -> list[Any]:
    """What an event says."""
    return [event.WhichOneof("body"), getattr(event, event.WhichOneof("body")), event.metadata]


async def restore(tenant: Tenant, conversation_id: str) -> int:
    request = pb.RestoreFromColdStorageRequest(conversation_id=conversation_id)
    return int((await tenant.raw.call("RestoreFromColdStorage", request)).event_count)


class TestReads:
    async def test_are_the_same_warm_and_cold_and_restored(
        self, cold: RunningStorage, postgres: LocalPostgres, owner: Tenant
    ) -> None:
        room = await mixed_conversation(owner)
        event_ids = [event.event_id for event in await listed(owner, room)]
        before = await everything_read(owner, room, event_ids)

        moved = await move_to_cold(owner, room)
        words_left = warm_words(postgres, room)
        while_cold = await everything_read(owner, room, event_ids)
        restored = await restore(owner, room)
        after = await everything_read(owner, room, event_ids)

        assert (moved.event_count, words_left, restored) == (6, 0, 6)
        assert moved.stored_bytes > 0
        assert while_cold == before
        assert after == before
        assert warm_words(postgres, room) == 6
        assert await objects_below(cold, owner, room) == []

    async def test_move_only_what_is_old(self, cold: RunningStorage, owner: Tenant) -> None:
        room = await mixed_conversation(owner)

        first = await move_to_cold(owner, room, until_seq=2)
        second = await move_to_cold(owner, room, until_seq=2)
        third = await move_to_cold(owner, room)

        counts = [one.event_count for one in (first, second, third)]
        assert counts == [2, 0, 4]
        assert len(await objects_below(cold, owner, room)) == 2
        assert len(await listed(owner, room)) == 6

    async def test_of_a_reindexed_conversation_keep_its_chunks(self, owner: Tenant) -> None:
        stored = await append(owner.raw, "", user("the lighthouse keeper counts heron feathers"))
        await eventually(owner.client.index.status, lambda now: now.pending_count == 0)
        await move_to_cold(owner, stored.conversation_id)

        await owner.client.conversations.delete(stored.conversation_id)
        await owner.client.conversations.restore(stored.conversation_id)
        await eventually(owner.client.index.status, lambda now: now.pending_count == 0)

        found = await owner.client.search.events("lighthouse keeper heron feathers")
        assert [hit.event.message.content for hit in found.hits] == [
            "the lighthouse keeper counts heron feathers"
        ]

    async def test_at_once_read_an_object_once(self, owner: Tenant) -> None:
        room = await mixed_conversation(owner)
        await move_to_cold(owner, room)
        read = FsspecObjects.read
        reads: list[str] = []

        async def counting(objects: FsspecObjects, path: str) -> bytes | None:
            reads.append(path)
            return await read(objects, path)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FsspecObjects, "read", counting)
            pages = await asyncio.gather(*(listed(owner, room) for _ in range(20)))

        assert len(reads) == 1
        assert {len(page) for page in pages} == {6}


class TestChanges:
    async def test_an_edit_brings_the_words_back(self, cold: RunningStorage, owner: Tenant) -> None:
        stored = await append(owner.raw, "", user("first"), user("second"))
        await move_to_cold(owner, stored.conversation_id)
        change = event_pb.NewEvent(message=res.MessageBody(role=res.ROLE_USER, content="edited"))

        await edit(owner.raw, ids(stored)[0], change, "body")

        versions = await history(owner.raw, ids(stored)[0])
        texts = [event.message.content for event in await listed(owner, stored.conversation_id)]
        assert [one.event.message.content for one in versions] == ["edited", "first"]
        assert texts == ["edited", "second"]
        assert await objects_below(cold, owner, stored.conversation_id) == []

    async def test_former_versions_keep_words_of_their_own(self, owner: Tenant) -> None:
        stored = await append(owner.raw, "", user("first"))
        change = event_pb.NewEvent(message=res.MessageBody(role=res.ROLE_USER, content="edited"))
        await edit(owner.raw, ids(stored)[0], change, "body")

        await move_to_cold(owner, stored.conversation_id)

        versions = await history(owner.raw, ids(stored)[0])
        assert [one.event.message.content for one in versions] == ["edited", "first"]

    async def test_a_fork_brings_the_words_back(self, cold: RunningStorage, owner: Tenant) -> None:
        room = await mixed_conversation(owner)
        before = await listed(owner, room)
        await move_to_cold(owner, room)
        request = conversation_pb.ForkConversationRequest(
            conversation_id=room, event_id=before[-1].event_id
        )

        made = await owner.raw.call("ForkConversation", request)

        copies = await listed(owner, made.conversation.conversation_id)
        assert [words(copy) for copy in copies] == [words(event) for event in before]
        assert [words(event) for event in await listed(owner, room)] == list(map(words, before))
        assert await objects_below(cold, owner, room) == []

    async def test_an_event_changed_while_it_moves_is_moved_as_it_then_is(
        self, cold: RunningStorage, owner: Tenant
    ) -> None:
        stored = await append(owner.raw, "", user("first"), user("second"))
        change = event_pb.NewEvent(message=res.MessageBody(role=res.ROLE_USER, content="edited"))
        write = FsspecObjects.write
        edits: list[Any] = []

        async def editing(objects: FsspecObjects, path: str, data: bytes) -> None:
            await write(objects, path, data)
            if not edits:
                edits.append(await edit(owner.raw, ids(stored)[0], change, "body"))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FsspecObjects, "write", editing)
            moved = await move_to_cold(owner, stored.conversation_id)

        texts = [event.message.content for event in await listed(owner, stored.conversation_id)]
        assert edits
        assert texts == ["edited", "second"]
        assert moved.event_count == 2
        assert len(await objects_below(cold, owner, stored.conversation_id)) == 1


class TestDamage:
    @pytest.mark.parametrize("damage", ["flipped", "cut", "gone", "another's"])
    async def test_is_told_and_never_returned(
        self, postgres: LocalPostgres, tmp_path: Path, damage: str
    ) -> None:
        async with service(postgres, tmp_path) as own, fresh_tenant(own) as tenant:
            room = await mixed_conversation(tenant)
            await move_to_cold(tenant, room)
            [path] = (tmp_path / "cold").rglob("*.jsonl.gz")
            whole = path.read_bytes()
            path.write_bytes(damaged(whole, damage))
            if damage == "gone":
                path.unlink()

            request = event_pb.ListEventsRequest(conversation_id=room)
            refused = await failure(tenant.raw.call("ListEvents", request))
            restoring = await failure(restore(tenant, room))
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(whole)
            healed = await listed(tenant, room)

        assert (refused.reason, dict(refused.metadata)["dependency"]) == (
            "DEPENDENCY_UNAVAILABLE",
            "cold storage",
        )
        assert restoring.reason == "DEPENDENCY_UNAVAILABLE"
        assert len(healed) == 6

    async def test_is_left_out_of_searches(self, scratch: ScratchDatabase, tmp_path: Path) -> None:
        async with service(scratch, tmp_path) as own, fresh_tenant(own) as tenant:
            old = await append(tenant.raw, "", user("the keeper counts heron feathers"))
            await append(tenant.raw, "", user("the keeper counts feathers of geese"))
            await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
            await move_to_cold(tenant, old.conversation_id)
            [path] = (tmp_path / "cold").rglob("*.jsonl.gz")
            path.write_bytes(damaged(path.read_bytes(), "flipped"))

            found = await tenant.client.search.events("heron feathers")

            assert [hit.event.message.content for hit in found.hits] == [
                "the keeper counts feathers of geese"
            ]
            assert list(found.degraded) == ["cold_storage"]

    async def test_holds_up_nobody_elses_mirror(
        self, scratch: ScratchDatabase, tmp_path: Path
    ) -> None:
        async with service(scratch, tmp_path) as own, fresh_tenant(own) as tenant:
            room = await mixed_conversation(tenant)
            await move_to_cold(tenant, room)
            for path in (tmp_path / "cold").rglob("*.jsonl.gz"):
                path.write_bytes(damaged(path.read_bytes(), "flipped"))
            assert own.app.indexing is not None
            own.app.indexing.cancel()
            await asyncio.wait({own.app.indexing})
            await tenant.client.conversations.delete(room)
            await tenant.client.conversations.restore(room)
            other = await append(tenant.raw, "", user("the lighthouse keeper counts feathers"))

            while await indexer(own).step():
                pass

            waiting = await tenant.client.index.status(conversation_id=room)
            done = await tenant.client.index.status(conversation_id=other.conversation_id)
            assert (waiting.pending_count, done.pending_count) == (6, 0)

    def test_the_digest_decides(self) -> None:
        data = encode([ColdWords(uuid4(), content="true")])
        forged = encode([ColdWords(uuid4(), content="false")])
        import hashlib

        digest = hashlib.sha256(data).digest()

        assert decode(data, digest)[0].content == "true"
        with pytest.raises(SegmentDamagedError):
            decode(forged, digest)

    async def test_a_write_that_reads_back_otherwise_takes_nothing_away(
        self, postgres: LocalPostgres, owner: Tenant
    ) -> None:
        room = await mixed_conversation(owner)
        write = FsspecObjects.write

        async def corrupting(objects: FsspecObjects, path: str, data: bytes) -> None:
            await write(objects, path, damaged(data, "flipped"))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FsspecObjects, "write", corrupting)
            refused = await failure(move_to_cold(owner, room))

        assert refused.reason == "DEPENDENCY_UNAVAILABLE"
        assert warm_words(postgres, room) == 6
        assert len(await listed(owner, room)) == 6


class TestOrphans:
    async def test_of_a_crash_are_removed_and_segments_stay(
        self, cold: RunningStorage, owner: Tenant
    ) -> None:
        room = await mixed_conversation(owner)
        await move_to_cold(owner, room, until_seq=3)
        storage = cold.adapters.cold
        objects = objects_of(storage)
        folder = folder_of(UUID(owner.tenant_id), UUID(room))
        await objects.write(f"{folder}/{uuid4()}.jsonl.gz", encode([]))

        removed = await storage.remove_orphans(UUID(owner.tenant_id), UUID(room))

        assert removed == 1
        assert len(await objects_below(cold, owner, room)) == 1
        assert len(await listed(owner, room)) == 6


class TestBounds:
    async def test_segments_end_where_they_are_full(
        self, cold: RunningStorage, owner: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from annals_storage.commands import cold_storage

        stored = await append(owner.raw, "", *[user("x" * 100) for _ in range(9)])
        monkeypatch.setattr(cold_storage, "MAX_SEGMENT_EVENTS", 4)
        monkeypatch.setattr(cold_storage, "MAX_SEGMENT_BYTES", 250)

        moved = await move_to_cold(owner, stored.conversation_id)

        assert moved.event_count == 9
        assert len(await objects_below(cold, owner, stored.conversation_id)) == 5
        assert len(await listed(owner, stored.conversation_id)) == 9

    async def test_pages_of_cold_events_are_cut_by_their_size(self, owner: Tenant) -> None:
        room = ""
        for _ in range(3):
            stored = await append(owner.raw, room, *[user(blank(900_000)) for _ in range(10)])
            room = stored.conversation_id
        await move_to_cold(owner, room)

        page = await owner.raw.call(
            "ListEvents", event_pb.ListEventsRequest(conversation_id=room, page_size=1000)
        )

        assert 0 < len(page.events) < 30
        assert page.next_page_token
        assert len(await listed(owner, room)) == 30


class TestCalls:
    async def test_without_a_store_are_told(self, postgres: LocalPostgres, tmp_path: Path) -> None:
        settings = {"cold_storage_url": ""}
        async with service(postgres, tmp_path, **settings) as own, fresh_tenant(own) as tenant:
            room = (await append(tenant.raw, "", user("x"))).conversation_id

            refused = await failure(move_to_cold(tenant, room))

        assert refused.reason == "NOT_CONFIGURED"
        assert dict(refused.metadata)["setting"] == "ANNALS_STORAGE_COLD_STORAGE_URL"

    async def test_of_unknown_conversations_and_bad_seqs_are_refused(self, owner: Tenant) -> None:
        unknown = await failure(move_to_cold(owner, str(uuid4())))
        negative = await failure(move_to_cold(owner, str(uuid4()), until_seq=-1))

        assert unknown.reason == "RESOURCE_NOT_FOUND"
        assert (negative.reason, negative.fields) == ("FIELD_INVALID", ("until_seq",))

    async def test_of_an_unreachable_store_take_nothing_away(
        self, postgres: LocalPostgres, tmp_path: Path
    ) -> None:
        (tmp_path / "cold").write_text("a file where a folder must be")
        async with service(postgres, tmp_path) as own, fresh_tenant(own) as tenant:
            room = await mixed_conversation(tenant)

            refused = await failure(move_to_cold(tenant, room))

            assert refused.reason == "DEPENDENCY_UNAVAILABLE"
            assert warm_words(postgres, room) == 6


async def test_everything_planted_is_erased_from_an_object_store_too(
    cold: RunningStorage, postgres: LocalPostgres, owner: Tenant
) -> None:
    from annals.storage.v1 import erasure_service_pb2 as erasure_pb

    planted = await plant(owner, new_marker())
    await move_to_cold(owner, planted.conversation_id)
    before = await objects_below(cold, owner, planted.conversation_id)

    request = erasure_pb.EraseConversationRequest(conversation_id=planted.conversation_id)
    await owner.raw.call("EraseConversation", request)

    assert len(before) == 1
    assert await objects_below(cold, owner, planted.conversation_id) == []
    assert tables_with(postgres, planted.marker) == set()
    assert objects_with(cold.data_dir / "cold", planted.marker) == []


def indexer(own: RunningStorage) -> Indexer:
    """Of this service, to be driven by hand."""
    adapters = own.adapters
    outbox = PostgresOutbox(adapters.database)
    mirror = Mirror(
        outbox=warmed(outbox, adapters.cold),
        vectors=adapters.vectors,
        embedder=adapters.embedder,
        sparse=adapters.sparse,
    )
    return Indexer(outbox=outbox, mirror=mirror, owner="by hand")


def objects_of(storage: ColdStorage) -> FsspecObjects:
    objects = storage._objects
    assert isinstance(objects, FsspecObjects)
    return objects


async def objects_below(cold: RunningStorage, tenant: Tenant, conversation_id: str) -> list[str]:
    folder = folder_of(UUID(tenant.tenant_id), UUID(conversation_id))
    return await objects_of(cold.adapters.cold).names(folder)


def damaged(data: bytes, how: str) -> bytes:
    match how:
        case "flipped":
            return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
        case "cut":
            return data[: len(data) // 2]
        case "another's":
            return gzip.compress(b'{"event_id": "00000000-0000-0000-0000-000000000000"}\n')
        case _:
            return data
