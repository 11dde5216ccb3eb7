"""Writers of every kind that do not give up, and what must be there once they are done."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import grpc.aio
from google.protobuf.message import Message
from tests.support.raw import Failure, Raw, outcome

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import user

CALL_TIMEOUT_S = 10.0
PAUSE_S = 0.05
TRANSIENT = frozenset(
    {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED", "RESOURCE_EXHAUSTED"}
)
_RECONNECT = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class Persistent(Raw):
    """Repeats a call, byte for byte, until it is acknowledged."""

    def __init__(self, address: str, api_key: str) -> None:
        super().__init__(address, api_key)
        self.channel = grpc.aio.insecure_channel(address, options=_RECONNECT)
        self.repeated = 0

    async def insist(self, name: str, request: Message) -> Any:
        """Return the answer. Fails when the service blames the call or itself."""
        while True:
            answer = await outcome(self.call(name, request, timeout_s=CALL_TIMEOUT_S))
            if not isinstance(answer, Failure):
                return answer
            assert answer.code.name in TRANSIENT, f"{name}({request}) → {answer}"
            self.repeated += 1
            await asyncio.sleep(PAUSE_S)


@dataclass(slots=True)
class Written:
    """What one conversation must hold: by event id its words, version and visibility."""

    conversation_id: str
    texts: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)

    def is_now(self, event_id: str, text: str) -> None:
        self.texts[event_id] = text
        self.versions[event_id] = self.versions.get(event_id, 0) + 1


@dataclass(slots=True)
class Progress:
    """How many rounds all writers have done, to wait for."""

    rounds: int = 0
    is_over: bool = False
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def add(self) -> None:
        async with self.changed:
            self.rounds += 1
            self.changed.notify_all()

    async def reach(self, rounds: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.rounds >= rounds)


def said(text: str, key: str = "") -> pb.NewEvent:
    event = user(text)
    event.idempotency_key = key
    return event


async def create(raw: Persistent) -> Written:
    request = conversation_pb.CreateConversationRequest(request_id=str(uuid4()))
    created = await raw.insist("CreateConversation", request)
    return Written(created.conversation.conversation_id)


async def write(raw: Persistent, written: Written, writer: int, progress: Progress) -> None:
    """Append, store a turn twice, edit, delete: again and again until the progress is over."""
    number = 0
    while not progress.is_over:
        number += 1
        await _round(raw, written, f"{writer}.{number}")
        await progress.add()


async def _round(raw: Persistent, written: Written, name: str) -> None:
    room = written.conversation_id
    append = pb.AppendEventsRequest(
        conversation_id=room,
        events=[said(f"plain {name}"), said(f"keyed {name}", f"k{name}")],
        request_id=str(uuid4()),
    )
    plain, keyed = (each.event_id for each in (await raw.insist("AppendEvents", append)).events)
    written.is_now(plain, f"plain {name}")
    written.is_now(keyed, f"keyed {name}")
    for store in (1, 2):
        text = f"turn {name} store {store}"
        turn = pb.StoreTurnRequest(
            conversation_id=room, turn_id=f"t{name}", event=said(text, f"s{name}.{store}")
        )
        written.is_now((await raw.insist("StoreTurn", turn)).event.event_id, text)
    edit = pb.EditEventRequest(event_id=plain, event=said(f"edited {name}", f"e{name}"))
    await raw.insist("EditEvent", edit)
    written.is_now(plain, f"edited {name}")
    await raw.insist("DeleteEvent", pb.DeleteEventRequest(event_id=keyed))
    written.is_now(keyed, f"keyed {name}")
    written.deleted.add(keyed)


async def assert_all_there_once(raw: Persistent, written: Written) -> None:
    """Fail unless the conversation holds what was acknowledged, and nothing else."""
    request = pb.ListEventsRequest(
        conversation_id=written.conversation_id, show_deleted=True, page_size=1_000
    )
    events: list[res.Event] = []
    while True:
        page = await raw.insist("ListEvents", request)
        events += page.events
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {event.event_id: event.message.content for event in events} == written.texts
    assert {event.event_id: event.version for event in events} == written.versions
    gone = {event.event_id for event in events if event.HasField("delete_time")}
    assert gone == written.deleted
