"""The model's rules for events: appends, changes, stored turns. `reference` adds the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.records import (
    TRUNK,
    Branch,
    Event,
    Item,
    Keyed,
    Memory,
    RefusedError,
    Stored,
)
from tests.model.said import Said


@dataclass(eq=False, slots=True)
class Writing:
    """A conversation as far as its events go."""

    conversation_id: str
    session_id: str = ""
    user_id: str = ""
    status: str = "ACTIVE"
    deleted: bool = False
    current: int = TRUNK
    events: list[Event] = field(default_factory=list)
    branches: dict[int, Branch] = field(default_factory=lambda: {TRUNK: Branch(TRUNK, 0, 0)})
    keys: dict[str, Keyed] = field(default_factory=dict)
    requests: dict[str, tuple[object, list[Event]]] = field(default_factory=dict)
    branch_requests: dict[str, tuple[object, Branch]] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)
    origin: tuple[Any, Event | None] | None = None
    changes: int = 0

    # Reading -------------------------------------------------------------------------------

    def view(self, branch: int = 0) -> list[Event]:
        """The events of a branch, deleted and erased ones too, by seq."""
        number = branch or self.current
        if number == TRUNK:
            return [event for event in self.events if event.branch == TRUNK]
        fork = self.branches[number]
        inherited = [event for event in self.view(fork.parent) if event.seq <= fork.fork_seq]
        return inherited + [event for event in self.events if event.branch == number]

    def shown(self, branch: int = 0) -> list[Event]:
        return [event for event in self.view(branch) if event.counts]

    def counters(self) -> dict[str, int]:
        counted = [event for event in self.events if event.counts]
        return {
            "last_seq": len(self.events),
            "event_count": len(counted),
            "message_count": sum(event.said.is_message for event in counted),
            "token_count": sum(event.said.token_count for event in counted),
            "memory_count": len(self.memories),
            "branch_count": len(self.branches),
            "current_branch": self.current,
        }

    def turn(self, turn_id: str) -> Event | None:
        """The newest event of a turn, on whatever branch."""
        return next((event for event in reversed(self.events) if event.turn_id == turn_id), None)

    # Guards --------------------------------------------------------------------------------

    def _must_be_there(self) -> None:
        if self.deleted:
            raise RefusedError("RESOURCE_NOT_FOUND")

    def _must_be_active(self) -> None:
        if self.status != "ACTIVE":
            raise RefusedError("CONVERSATION_NOT_ACTIVE")

    def _changed(self) -> None:
        self.changes += 1

    # Appending -----------------------------------------------------------------------------

    def append(
        self,
        items: Sequence[Item],
        *,
        branch: int = 0,
        request_id: str = "",
        expected_last_seq: int | None = None,
    ) -> list[Stored]:
        self._must_be_there()
        call = (tuple((item.payload, item.key, item.event_id) for item in items), branch)
        if request_id in self.requests:
            return self._repeated(request_id, call)
        known = [self.keys.get(item.key) if item.key else None for item in items]
        for item, keyed in zip(items, known, strict=True):
            if keyed is not None and keyed.payload != item.payload:
                raise RefusedError("IDEMPOTENCY_KEY_REUSED")
        if not all(known):
            self._check_call(branch, expected_last_seq)
            self._check_new(items, known)
            self._changed()
        stored = [
            replace(keyed.stored, replayed=True) if keyed else self._store(item, branch)
            for item, keyed in zip(items, known, strict=True)
        ]
        if request_id:
            self.requests[request_id] = (call, [each.event for each in stored])
        return stored

    def _repeated(self, request_id: str, call: object) -> list[Stored]:
        before, events = self.requests[request_id]
        if before != call:
            raise RefusedError("IDEMPOTENCY_KEY_REUSED")
        return [Stored(event, replayed=True) for event in events]

    def _check_call(self, branch: int, expected: int | None) -> None:
        if branch and branch not in self.branches:
            raise RefusedError("RESOURCE_NOT_FOUND")
        self._must_be_active()
        if expected is not None and expected != len(self.events):
            raise RefusedError("SEQ_MISMATCH")

    def _check_new(self, items: Sequence[Item], known: Sequence[Keyed | None]) -> None:
        taken = {event.event_id for event in self.events}
        calls = self._calls_before(len(self.events) + 1)
        for item, keyed in zip(items, known, strict=True):
            if keyed is None and item.event_id and item.event_id in taken:
                raise RefusedError("RESOURCE_ALREADY_EXISTS")
            if keyed is None and item.said.is_result and item.said.call_id not in calls:
                raise RefusedError("TOOL_CALL_NOT_FOUND")
            if item.said.is_call:
                calls.add(item.said.call_id)

    def _store(self, item: Item, branch: int, turn_id: str = "") -> Stored:
        event = Event(
            len(self.events) + 1, branch or self.current, item.said, turn_id, parent=item.parent
        )
        event.observe("STORE", item.key)
        self.events.append(event)
        stored = Stored(event, replayed=False, said=item.said)
        if item.key:
            self.keys[item.key] = Keyed(item.payload, stored)
        return stored

    # Changing ------------------------------------------------------------------------------

    def edit(
        self, event: Event, said: Said, *, key: str = "", expected_version: int = 0
    ) -> tuple[Event, bool]:
        """Return the event and whether an earlier call had done it."""
        self._must_be_there()
        payload = ("edit", event, said)
        if keyed := self.keys.get(key) if key else None:
            if keyed.payload != payload:
                raise RefusedError("IDEMPOTENCY_KEY_REUSED")
            return event, True
        self._must_be_changeable(event, said)
        if expected_version and expected_version != event.version:
            raise RefusedError("VERSION_MISMATCH")
        if said.is_result and said.call_id not in self._calls_before(event.seq):
            raise RefusedError("TOOL_CALL_NOT_FOUND")
        event.said = said
        event.edited = True
        event.observe("EDIT", key)
        self._changed()
        if key:
            self.keys[key] = Keyed(payload, Stored(event, replayed=False, version=event.version))
        return event, False

    def _must_be_changeable(self, event: Event, said: Said) -> None:
        self._must_not_be_erased(event)
        if event.deleted:
            raise RefusedError("EVENT_DELETED")
        if event.said.kind != said.kind:
            raise RefusedError("FIELD_INVALID")

    def _calls_before(self, seq: int) -> set[str]:
        return {
            event.said.call_id for event in self.events if event.said.is_call and event.seq < seq
        }

    def delete_event(self, event: Event) -> Event:
        return self._set_deleted(event, "DELETE", deleted=True)

    def restore_event(self, event: Event) -> Event:
        return self._set_deleted(event, "RESTORE", deleted=False)

    def _set_deleted(self, event: Event, kind: str, *, deleted: bool) -> Event:
        self._must_be_there()
        self._must_not_be_erased(event)
        if event.deleted is not deleted:
            event.deleted = deleted
            event.observe(kind)
            self._changed()
        return event

    def _must_not_be_erased(self, event: Event) -> None:
        if event.erased:
            raise RefusedError("EVENT_ERASED")

    def erase_event(self, event: Event) -> None:
        if event.erased:
            return
        event.said = event.said.erased()
        event.turn_id, event.parent, event.origin, event.superseded_by = "", None, None, None
        event.edited, event.erased = False, True
        event.history.clear()
        self.keys = {key: keyed for key, keyed in self.keys.items() if keyed.stored.event != event}
        self._changed()

    # Turns ---------------------------------------------------------------------------------

    def store_turn(self, turn_id: str, item: Item) -> tuple[Stored, Event | None]:
        """Return what was stored, and the event it supersedes."""
        self._must_be_there()
        payload = ("turn", item.said, turn_id)
        if keyed := self.keys.get(item.key) if item.key else None:
            if keyed.payload != payload:
                raise RefusedError("IDEMPOTENCY_KEY_REUSED")
            return replace(keyed.stored, replayed=True), self._superseded(keyed.stored.event)
        self._must_be_active()
        in_view = [event for event in self.view() if event.turn_id == turn_id]
        former = self.turn(turn_id)
        stored = self._again(in_view[-1], item) if in_view else self._first(turn_id, item, former)
        self._changed()
        if item.key:
            self.keys[item.key] = Keyed(payload, stored)
        return stored, self._superseded(stored.event)

    def _superseded(self, event: Event) -> Event | None:
        return next((each for each in self.events if each.superseded_by is event), None)

    def _again(self, event: Event, item: Item) -> Stored:
        self._must_be_changeable(event, item.said)
        event.said = item.said
        event.edited = True
        event.observe("STORE", item.key)
        return Stored(event, replayed=False, version=event.version, created=False, said=item.said)

    def _first(self, turn_id: str, item: Item, former: Event | None) -> Stored:
        stored = self._store(item, 0, turn_id)
        if former is not None:
            former.superseded_by = stored.event
        return stored
