"""What a conversation is meant to be: the service's rules in plain Python, without a database.

Every change either happens and is described by what the method returns, or raises `RefusedError`
with the reason the service must give. Ids are learnt from the service; seqs, versions, views,
counters and histories are computed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.model.records import TRUNK, Branch, Event, Item, Memory, RefusedError
from tests.model.writing import Writing


@dataclass(eq=False, slots=True)
class Conversation(Writing):
    """One conversation and everything in it."""

    # Branches ------------------------------------------------------------------------------

    def open_branch(
        self, event: Event | None, *, parent: int = 0, select: bool, request_id: str = ""
    ) -> Branch:
        self._must_be_there()
        call = (event, parent, select)
        if request_id in self.branch_requests:
            before, branch = self.branch_requests[request_id]
            if before != call:
                raise RefusedError("IDEMPOTENCY_KEY_REUSED")
            return branch
        if parent and parent not in self.branches:
            raise RefusedError("RESOURCE_NOT_FOUND")
        if event is not None and event not in self.view(parent):
            raise RefusedError("RESOURCE_NOT_FOUND")
        number = len(self.branches) + 1
        branch = Branch(number, parent or self.current, event.seq if event else 0)
        self.branches[number] = branch
        if select:
            self.current = number
        if request_id:
            self.branch_requests[request_id] = (call, branch)
        self._changed()
        return branch

    def select_branch(self, number: int) -> Branch:
        self._must_be_there()
        if number not in self.branches:
            raise RefusedError("RESOURCE_NOT_FOUND")
        if self.current != number:
            self.current = number
            self._changed()
        return self.branches[number]

    def fork(self, conversation_id: str, event: Event | None, branch: int = 0) -> Conversation:
        self._must_be_there()
        if branch and branch not in self.branches:
            raise RefusedError("RESOURCE_NOT_FOUND")
        view = self.view(branch)
        if event is not None and event not in view:
            raise RefusedError("RESOURCE_NOT_FOUND")
        copied = [each for each in view if event is None or each.seq <= event.seq]
        new = Conversation(conversation_id, self.session_id, self.user_id)
        new.origin = (self, event)
        new.copy(each for each in copied if each.counts)
        return new

    def copy(self, events: Iterable[Event]) -> None:
        """Take events over into this new conversation, numbered anew."""
        copies: dict[int, Event] = {}
        for event in events:
            parent = copies.get(event.parent.seq) if event.parent else None
            stored = self._store(Item(event.said, parent=parent), TRUNK, event.turn_id)
            stored.event.origin = event
            copies[event.seq] = stored.event

    # The conversation itself ---------------------------------------------------------------

    def set_status(self, status: str) -> None:
        self._must_be_there()
        if self.status != status:
            self.status = status
            self._changed()

    def set_deleted(self, *, deleted: bool) -> None:
        if self.deleted is not deleted:
            self.deleted = deleted
            self._changed()

    def store_memory(self, memory: Memory) -> Memory:
        self._must_be_there()
        self.memories[memory.memory_id] = memory
        self._changed()
        return memory

    def delete_memory(self, memory: Memory) -> None:
        self._must_be_there()
        del self.memories[memory.memory_id]
        self._changed()


@dataclass(slots=True)
class World:
    """All conversations of a tenant, and whom sessions belong to."""

    conversations: list[Conversation] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)

    def merge(self, session_id: str, user_id: str) -> list[Conversation]:
        """Return the conversations that move."""
        if self.merged.get(session_id, user_id) != user_id:
            raise RefusedError("SESSION_ALREADY_MERGED")
        self.merged[session_id] = user_id
        moving = list(self._of_session(session_id))
        for conversation in moving:
            conversation.session_id, conversation.user_id = "", user_id
            conversation.changes += 1
        return moving

    def _of_session(self, session_id: str) -> Iterator[Conversation]:
        return (each for each in self.conversations if each.session_id == session_id)
