"""Appends and what becomes of their events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.message import Message
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.model.machine import KINDS, PICK, Machine, one_of
from tests.model.records import Event, Item, Stored
from tests.model.reference import Conversation
from tests.model.said import Said

from annals.storage.v1 import erasure_service_pb2 as erasure_pb
from annals.storage.v1 import event_service_pb2 as pb

KEYS = st.sampled_from(["", "", "", "k1", "k2", "k3", "k4", "k5", "k6"])
UNKNOWN_CALL = "call-unknown"
NO_BRANCH = 99


@dataclass(frozen=True, slots=True)
class Sent:
    """An append as it was sent, to send it again."""

    conversation: Conversation
    items: tuple[Item, ...]
    request: pb.AppendEventsRequest


@dataclass(frozen=True, slots=True)
class SentEdit:
    """An edit as it was sent, to send it again."""

    conversation: Conversation
    event: Event
    item: Item
    expected_version: int


class EventRules(Machine):
    """Append, repeat, edit, delete, restore, erase."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Sent] = []
        self.edits: list[SentEdit] = []
        self.calls = 0

    @rule(
        where=PICK,
        kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
        key=KEYS,
        parent=PICK,
        branch=st.sampled_from([0, 0, 0, 1, 2, 3, NO_BRANCH]),
        options=st.sampled_from(
            ["", "", "", "", "request_id", "expected", "wrong", "supplied", "taken"]
        ),
    )
    def append(
        self, where: int, kinds: list[str], key: str, parent: int, branch: int, options: str
    ) -> None:
        conversation = self.conversation(where)
        items = [Item(self.said_of_kind(conversation, kind, where)) for kind in kinds]
        event_id = self.event_id(conversation, options, where)
        items[0] = Item(items[0].said, key, self.parent(conversation, parent), event_id)
        self.send(conversation, tuple(items), branch, options)

    def send(
        self, conversation: Conversation, items: tuple[Item, ...], branch: int, options: str
    ) -> None:
        request = pb.AppendEventsRequest(
            conversation_id=conversation.conversation_id,
            events=[new_event(item) for item in items],
            branch=branch,
            request_id=self.new_id() if options == "request_id" else "",
        )
        if options in {"expected", "wrong"}:
            request.expected_last_seq = len(conversation.events) + (options == "wrong")
        self.sent.append(Sent(conversation, items, request))
        self.take(self.sent[-1])

    def take(self, sent: Sent) -> None:
        conversation, request = sent.conversation, sent.request
        expected = request.expected_last_seq if request.HasField("expected_last_seq") else None
        done = self.attempt(
            "AppendEvents",
            request,
            lambda: conversation.append(
                sent.items,
                branch=request.branch,
                request_id=request.request_id,
                expected_last_seq=expected,
            ),
        )
        stored = self.learn_appended(*done) if done else []
        self.check(conversation, *(each.event for each in stored))

    def learn_appended(self, stored: list[Stored], answer: pb.AppendEventsResponse) -> list[Stored]:
        for each, shown in zip(stored, answer.events, strict=True):
            assert shown.replayed is each.replayed
            assert shown.seq == each.event.seq
            each.event.event_id = each.event.event_id or shown.event_id
            assert shown.event_id == each.event.event_id
        return stored

    @precondition(lambda self: self.sent)
    @rule(pick=PICK)
    def append_again(self, pick: int) -> None:
        """A retry, however much happened since."""
        sent = one_of(self.sent, pick)
        if sent.conversation in self.conversations:
            self.take(sent)

    @precondition(lambda self: self.sent)
    @rule(pick=PICK)
    def append_other_words_again(self, pick: int) -> None:
        """The same request_id or key, other content."""
        sent = one_of(self.sent, pick)
        if sent.conversation not in self.conversations:
            return
        first, *rest = sent.items
        said = self.said("message")
        items = (replace(first, said=said), *rest)
        request = pb.AppendEventsRequest()
        request.CopyFrom(sent.request)
        request.events[0].CopyFrom(new_event(items[0]))
        changed = Sent(sent.conversation, items, request)
        self.take(changed)

    @precondition(lambda self: self.has_events())
    @rule(
        where=PICK,
        which=PICK,
        key=KEYS,
        kind=st.sampled_from(["", "", "", "", "system"]),
        version=st.sampled_from(["", "", "right", "wrong"]),
    )
    def edit(self, where: int, which: int, key: str, kind: str, version: str) -> None:
        conversation = self.with_events(where)
        event = self.event(conversation, which)
        expected = event.version + (version == "wrong") if version else 0
        said = self.said(kind or event.said.kind)
        if said.is_call or said.is_result:
            said = replace(said, call_id=event.said.call_id or UNKNOWN_CALL)
        self.edits.append(SentEdit(conversation, event, Item(said, key), expected))
        self.take_edit(self.edits[-1])

    @precondition(lambda self: self.edits)
    @rule(pick=PICK)
    def edit_again(self, pick: int) -> None:
        """A retry where there was a key; else one more edit to the same words."""
        sent = one_of(self.edits, pick)
        if sent.conversation in self.conversations:
            self.take_edit(sent)

    def take_edit(self, sent: SentEdit) -> None:
        conversation, event, item = sent.conversation, sent.event, sent.item
        request = pb.EditEventRequest(
            event_id=event.event_id,
            event=new_event(item),
            expected_version=sent.expected_version,
        )
        done = self.attempt(
            "EditEvent",
            request,
            lambda: conversation.edit(
                event, item.said, key=item.key, expected_version=sent.expected_version
            ),
        )
        if done:
            (_, replayed), answer = done
            assert answer.replayed is replayed
            self.check_stored(conversation, Stored(event, replayed), answer.event)
        self.check(conversation, event)

    @precondition(lambda self: self.has_events())
    @rule(where=PICK, which=PICK)
    def delete_event(self, where: int, which: int) -> None:
        conversation = self.with_events(where)
        event = self.event(conversation, which)
        request = pb.DeleteEventRequest(event_id=event.event_id)
        self.change(
            conversation, event, "DeleteEvent", request, lambda: conversation.delete_event(event)
        )

    @precondition(lambda self: self.has_events())
    @rule(where=PICK, which=PICK)
    def restore_event(self, where: int, which: int) -> None:
        conversation = self.with_events(where)
        gone = [event for event in conversation.events if event.deleted] or conversation.events
        event = one_of(gone, which)
        request = pb.RestoreEventRequest(event_id=event.event_id)
        self.change(
            conversation, event, "RestoreEvent", request, lambda: conversation.restore_event(event)
        )

    def change(
        self,
        conversation: Conversation,
        event: Event,
        name: str,
        request: Message,
        act: Any,
    ) -> None:
        done = self.attempt(name, request, act)
        if done:
            self.check_stored(conversation, Stored(event, replayed=False), done[1].event)
        self.check(conversation, event)

    def said_of_kind(self, conversation: Conversation, kind: str, pick: int) -> Said:
        if kind == "tool_call":
            self.calls += 1
            return self.said(kind, f"call-{self.calls}")
        if kind == "tool_result":
            calls = [
                e.said.call_id for e in conversation.events if e.said.is_call and e.said.call_id
            ]
            return self.said(
                kind,
                one_of([*calls, UNKNOWN_CALL] if pick % 5 == 0 else calls or [UNKNOWN_CALL], pick),
            )
        return self.said(kind)

    def event_id(self, conversation: Conversation, options: str, pick: int) -> str:
        """The caller's own id of an event: mostly none."""
        if options == "taken" and conversation.events:
            return self.event(conversation, pick).event_id
        return self.new_id() if options == "supplied" else ""

    def parent(self, conversation: Conversation, pick: int) -> Event | None:
        """Every third event answers one."""
        known = [event for event in conversation.events if event.event_id]
        return one_of(known, pick) if known and pick % 3 == 0 else None


class ErasureRules(Machine):
    """What is erased leaves its place behind."""

    @precondition(lambda self: self.has_events())
    @rule(where=PICK, which=PICK)
    def erase_event(self, where: int, which: int) -> None:
        conversation = self.with_events(where)
        event = self.event(conversation, which)
        if which % 4:
            return
        texts = self.erased_texts.setdefault(conversation.conversation_id, [])
        texts += [each.said.text for each in event.history]
        request = erasure_pb.EraseEventRequest(event_id=event.event_id)
        self.attempt("EraseEvent", request, lambda: conversation.erase_event(event))
        self.check(conversation, event)


def new_event(item: Item) -> pb.NewEvent:
    event = item.said.new_event()
    event.event_id = item.event_id
    event.idempotency_key = item.key
    event.parent_event_id = item.parent.event_id if item.parent else ""
    return event
