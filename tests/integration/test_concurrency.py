"""Many writers at once: places without gaps, exact counters, nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from tests.bench.stack import free_port, process
from tests.support.appending import append, check_counters, empty_conversation, listed, state
from tests.support.invariants import assert_invariants
from tests.support.raw import Failure, Raw, outcome
from tests.support.scratch import ScratchDatabase
from tests.support.storage import ADMIN_KEY, Tenant
from tests.support.waiting import eventually

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import AsyncAnnalsClient, user
from annals_local.postgres import LocalPostgres

WRITERS = 64
ROUNDS = 2
START_TIMEOUT_S = 60.0


def said(text: str, key: str = "") -> pb.NewEvent:
    event = user(text)
    event.idempotency_key = key
    return event


async def store_turn(raw: Raw, room: str, turn_id: str, event: pb.NewEvent) -> pb.StoreTurnResponse:
    request = pb.StoreTurnRequest(conversation_id=room, turn_id=turn_id, event=event)
    response: pb.StoreTurnResponse = await raw.call("StoreTurn", request)
    return response


async def edit(raw: Raw, event_id: str, text: str, version: int = 0) -> pb.EditEventResponse:
    request = pb.EditEventRequest(event_id=event_id, event=user(text), expected_version=version)
    response: pb.EditEventResponse = await raw.call("EditEvent", request)
    return response


async def write(raw: Raw, room: str, writer: int) -> list[str]:
    """Append, store a turn twice, edit, each sent twice at once; return what must be there."""
    left = []
    for number in range(ROUNDS):
        name = f"{writer}.{number}"
        request_id = str(uuid4())
        pair = [said(f"append {name}"), said(f"keyed {name}", f"k{name}")]
        appended, _ = await asyncio.gather(
            *(append(raw, room, *pair, request_id=request_id) for _ in range(2))
        )
        await asyncio.gather(
            *(store_turn(raw, room, f"t{name}", said("draft", f"d{name}")) for _ in range(2))
        )
        await store_turn(raw, room, f"t{name}", said(f"turn {name}"))
        await edit(raw, appended.events[0].event_id, f"edited {name}")
        left += [f"edited {name}", f"keyed {name}", f"turn {name}"]
    return left


async def write_all(raws: Sequence[Raw], rooms: Sequence[str]) -> dict[str, list[str]]:
    """Let every writer write, each through one of the services to one of the rooms."""
    written = await asyncio.gather(
        *(
            write(raws[writer % len(raws)], rooms[writer % len(rooms)], writer)
            for writer in range(WRITERS)
        )
    )
    return {
        room: [text for own in written[place :: len(rooms)] for text in own]
        for place, room in enumerate(rooms)
    }


async def assert_whole(tenant: Tenant, admin_url: str, expected: dict[str, list[str]]) -> None:
    for room, texts in expected.items():
        events = await check_counters(tenant, room)
        assert Counter(event.message.content for event in events) == Counter(texts)
    assert_invariants(admin_url, tenant.tenant_id)


@pytest.mark.parametrize("room_count", [1, 16])
async def test_writers_of_every_kind_lose_and_double_nothing(
    tenant: Tenant, postgres: LocalPostgres, room_count: int
) -> None:
    rooms = [await empty_conversation(tenant) for _ in range(room_count)]

    expected = await write_all([tenant.raw], rooms)

    await assert_whole(tenant, postgres.admin_url, expected)


async def test_one_turn_stored_by_all_at_once_is_one_event(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    room = await empty_conversation(tenant)

    answers = await asyncio.gather(
        *(store_turn(tenant.raw, room, "t", said(f"{n}", f"k{n}")) for n in range(WRITERS))
    )

    assert len({answer.event.event_id for answer in answers}) == 1
    versions = sorted(answer.observation_version for answer in answers)
    assert versions == list(range(1, WRITERS + 1))
    assert [answer.created for answer in answers].count(True) == 1
    newest = max(answers, key=lambda answer: answer.observation_version)
    await check_counters(tenant, room, expected=[newest.event.message.content])
    assert_invariants(postgres.admin_url, tenant.tenant_id)


async def test_of_edits_that_expect_the_same_version_one_wins(tenant: Tenant) -> None:
    room = await empty_conversation(tenant)
    stored = await append(tenant.raw, room, said("first"))
    event_id = stored.events[0].event_id

    answers = await asyncio.gather(
        *(outcome(edit(tenant.raw, event_id, f"edit {n}", version=1)) for n in range(WRITERS))
    )

    refused = [answer.reason for answer in answers if isinstance(answer, Failure)]
    assert refused == ["VERSION_MISMATCH"] * (WRITERS - 1)
    won = next(answer for answer in answers if not isinstance(answer, Failure))
    await check_counters(tenant, room, expected=[won.event.message.content])


async def test_deleting_and_restoring_at_once_leaves_exact_counters(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    room = await empty_conversation(tenant)
    stored = await append(tenant.raw, room, *[said(f"event {n}") for n in range(8)])
    requests = [
        (name, kind(event_id=event.event_id))
        for event in stored.events
        for name, kind in (
            ("DeleteEvent", pb.DeleteEventRequest),
            ("RestoreEvent", pb.RestoreEventRequest),
            ("DeleteEvent", pb.DeleteEventRequest),
        )
    ]

    await asyncio.gather(
        *(tenant.raw.call(name, request) for name, request in requests),
        *(append(tenant.raw, room, said(f"late {n}")) for n in range(WRITERS)),
    )

    shown = await listed(tenant, room)
    assert (await state(tenant.raw, room)).event_count == len(shown)
    assert_invariants(postgres.admin_url, tenant.tenant_id)


async def test_reverts_between_appends_keep_every_view_whole(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    room = await empty_conversation(tenant)
    await append(tenant.raw, room, said("first"))
    reverts = 4

    async def revert(number: int) -> int:
        for _ in range(number * 4):
            await state(tenant.raw, room)
        request = pb.RevertToEventRequest(conversation_id=room)
        branch: int = (await tenant.raw.call("RevertToEvent", request)).branch.branch
        return branch

    branches = await asyncio.gather(
        *(revert(number) for number in range(reverts)),
        *(append(tenant.raw, room, said(f"text {n}")) for n in range(WRITERS)),
    )

    assert sorted(each for each in branches if isinstance(each, int)) == [2, 3, 4, 5]
    everything = await all_events(tenant, room)
    assert [event.seq for event in everything] == list(range(1, WRITERS + 2))
    for branch in range(1, reverts + 2):
        request = pb.ListEventsRequest(conversation_id=room, branch=branch, page_size=1000)
        shown = (await tenant.raw.call("ListEvents", request)).events
        own = [event.seq for event in everything if event.branch == branch]
        assert [event.seq for event in shown] == own  # reverts to nothing: nothing is shared
    assert_invariants(postgres.admin_url, tenant.tenant_id)


async def all_events(tenant: Tenant, room: str) -> list[pb.NewEvent]:
    request = pb.ListEventsRequest(conversation_id=room, all_branches=True, page_size=1000)
    return list((await tenant.raw.call("ListEvents", request)).events)


class TestTwoProcesses:
    """Two storage services, each a process, on one database."""

    @pytest.fixture
    async def tenant(self, scratch: ScratchDatabase, tmp_path: Path) -> AsyncIterator[Tenant]:
        with ExitStack() as running:
            self.addresses = [
                start(running, scratch, tmp_path / f"data{number}") for number in range(2)
            ]
            await asyncio.gather(*(until_serving(address) for address in self.addresses))
            async with AsyncAnnalsClient(storage=self.addresses[0], admin_key=ADMIN_KEY) as admin:
                created = await admin.tenants.create("two processes")
            secret = created.api_key_secret
            async with (
                AsyncAnnalsClient(storage=self.addresses[0], api_key=secret) as client,
                Raw(self.addresses[0], secret) as raw,
            ):
                yield Tenant(created.tenant.tenant_id, secret, client, raw)

    async def test_writers_lose_and_double_nothing(
        self, tenant: Tenant, scratch: ScratchDatabase
    ) -> None:
        shared = [await empty_conversation(tenant)]
        several = [await empty_conversation(tenant) for _ in range(9)]

        async with Raw(self.addresses[1], tenant.api_key) as other:
            expected = await write_all([tenant.raw, other], shared)
            expected |= await write_all([tenant.raw, other], several)

        await assert_whole(tenant, scratch.admin_url, expected)

    async def test_the_same_call_to_both_is_done_once(
        self, tenant: Tenant, scratch: ScratchDatabase
    ) -> None:
        room = await empty_conversation(tenant)
        texts = [f"text {number}" for number in range(WRITERS)]

        async with Raw(self.addresses[1], tenant.api_key) as other:
            answers = await asyncio.gather(
                *(
                    append(raw, room, said(text, f"k {text}"))
                    for text in texts
                    for raw in (tenant.raw, other)
                )
            )

        replays = Counter(answer.events[0].replayed for answer in answers)
        assert replays == {False: WRITERS, True: WRITERS}
        events = await check_counters(tenant, room)
        assert sorted(event.message.content for event in events) == sorted(texts)
        assert_invariants(scratch.admin_url, tenant.tenant_id)


def start(running: ExitStack, database: ScratchDatabase, data_dir: Path) -> str:
    """Start a storage process; it ends with `running`."""
    address = f"127.0.0.1:{free_port()}"
    data_dir.mkdir()
    env = {
        "ANNALS_STORAGE_SERVER__ADDRESS": address,
        "ANNALS_STORAGE_DATABASE_URL": database.app_url,
        "ANNALS_STORAGE_ADMIN_KEY_SHA256": hashlib.sha256(ADMIN_KEY.encode()).hexdigest(),
        "ANNALS_STORAGE_DATA_DIR": str(data_dir),
        "ANNALS_STORAGE_INDEXER_NAME": address,
        "ANNALS_STORAGE_EMBEDDING_THREADS": "1",
    }
    log = running.enter_context((data_dir / "storage.log").open("wb"))
    running.enter_context(process([sys.executable, "-m", "annals_storage", "serve"], env, log))
    return address


async def until_serving(address: str) -> None:
    async with AsyncAnnalsClient(storage=address) as client:

        async def health() -> str:
            try:
                return await client.health.storage()
            except Exception as error:  # noqa: BLE001 - not listening yet
                return str(error)

        await eventually(health, lambda it: it == "serving", timeout_s=START_TIMEOUT_S)
