"""Stored turns, branches and forks."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.model.machine import MAX_BRANCHES, MAX_CONVERSATIONS, PICK, Machine, one_of
from tests.model.records import Branch, Event, Item
from tests.model.reference import Conversation
from tests.model.rules_events import NO_BRANCH, new_event

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res

TURNS = st.sampled_from(["t1", "t2", "t3"])
TURN_KEYS = st.sampled_from(["", "", "s1", "s2", "s3", "s4", "s5", "s6"])


@dataclass(frozen=True, slots=True)
class SentTurn:
    """A store of a turn as it was sent, to send it again."""

    conversation: Conversation
    turn_id: str
    item: Item


class TurnRules(Machine):
    """The same slot stored again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[SentTurn] = []

    @rule(
        where=PICK,
        turn=TURNS,
        key=TURN_KEYS,
        kind=st.sampled_from(["message", "message", "message", "system"]),
    )
    def store_turn(self, where: int, turn: str, key: str, kind: str) -> None:
        conversation = self.conversation(where)
        self.turns.append(SentTurn(conversation, turn, Item(self.said(kind), key)))
        self.take_turn(self.turns[-1])

    @precondition(lambda self: self.turns)
    @rule(pick=PICK)
    def store_turn_again(self, pick: int) -> None:
        """A retry where there was a key; else a further store of the same words."""
        sent = one_of(self.turns, pick)
        if sent.conversation in self.conversations:
            self.take_turn(sent)

    @precondition(lambda self: self.turns)
    @rule(pick=PICK, turn=TURNS)
    def store_other_words_under_the_same_key(self, pick: int, turn: str) -> None:
        sent = one_of(self.turns, pick)
        if sent.conversation in self.conversations:
            item = Item(self.said(sent.item.said.kind), sent.item.key)
            self.take_turn(SentTurn(sent.conversation, turn, item))

    def take_turn(self, sent: SentTurn) -> None:
        conversation = sent.conversation
        request = pb.StoreTurnRequest(
            conversation_id=conversation.conversation_id,
            turn_id=sent.turn_id,
            event=new_event(sent.item),
        )
        done = self.attempt(
            "StoreTurn", request, lambda: conversation.store_turn(sent.turn_id, sent.item)
        )
        if done is None:
            self.check(conversation)
            return
        (stored, superseded), answer = done
        stored.event.event_id = stored.event.event_id or answer.event.event_id
        assert answer.event.event_id == stored.event.event_id
        assert answer.replayed is stored.replayed
        assert answer.observation_version == stored.version
        assert answer.created is stored.created
        assert answer.superseded_event_id == (superseded.event_id if superseded else "")
        self.check_stored(conversation, stored, answer.event)
        self.check(conversation, stored.event, *([superseded] if superseded else []))


class BranchRules(Machine):
    """Revert, branch from here, select, fork."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[tuple[Conversation, pb.CreateBranchRequest, Event | None]] = []

    def can_branch(self) -> bool:
        return any(len(each.branches) < MAX_BRANCHES for each in self.conversations)

    def branching(self, pick: int) -> Conversation:
        free = [each for each in self.conversations if len(each.branches) < MAX_BRANCHES]
        return one_of(free, pick)

    def last_kept(self, conversation: Conversation, pick: int, branch: int = 0) -> Event | None:
        """Mostly an event in view; sometimes none, sometimes one of another branch."""
        if pick % 11 == 0 or not conversation.events:
            return None
        out_of_view = pick % 7 == 0 or branch not in {0, *conversation.branches}
        choices = conversation.events if out_of_view else conversation.view(branch)
        return one_of(choices, pick) if choices else None

    @precondition(lambda self: self.can_branch())
    @rule(where=PICK, which=PICK)
    def revert(self, where: int, which: int) -> None:
        conversation = self.branching(where)
        event = self.last_kept(conversation, which)
        request = pb.RevertToEventRequest(
            conversation_id=conversation.conversation_id,
            event_id=event.event_id if event else "",
        )
        done = self.attempt(
            "RevertToEvent", request, lambda: conversation.open_branch(event, select=True)
        )
        if done:
            self.check_branch(*done)
        self.check(conversation, *conversation.events[-1:])

    @precondition(lambda self: self.can_branch())
    @rule(
        where=PICK,
        which=PICK,
        parent=st.sampled_from([0, 0, 0, 1, 2, 3, NO_BRANCH]),
        select=st.booleans(),
        with_id=st.booleans(),
    )
    def create_branch(
        self, where: int, which: int, parent: int, select: bool, with_id: bool
    ) -> None:
        conversation = self.branching(where)
        event = self.last_kept(conversation, which, parent)
        request = pb.CreateBranchRequest(
            conversation_id=conversation.conversation_id,
            event_id=event.event_id if event else "",
            parent_branch=parent,
            select=select,
            request_id=self.new_id() if with_id else "",
        )
        if with_id:
            self.opened.append((conversation, request, event))
        self.open_branch(conversation, request, event)

    @precondition(lambda self: self.opened)
    @rule(pick=PICK, changed=st.booleans())
    def create_branch_again(self, pick: int, changed: bool) -> None:
        conversation, request, event = one_of(self.opened, pick)
        if conversation not in self.conversations or len(conversation.branches) >= MAX_BRANCHES:
            return
        again = pb.CreateBranchRequest()
        again.CopyFrom(request)
        again.select = request.select is not changed
        self.open_branch(conversation, again, event)

    def open_branch(
        self, conversation: Conversation, request: pb.CreateBranchRequest, event: Event | None
    ) -> None:
        done = self.attempt(
            "CreateBranch",
            request,
            lambda: conversation.open_branch(
                event,
                parent=request.parent_branch,
                select=request.select,
                request_id=request.request_id,
            ),
        )
        if done:
            self.check_branch(*done)
        self.check(conversation)

    def check_branch(self, known: Branch, answer: pb.CreateBranchResponse) -> None:
        shown: res.Branch = answer.branch
        assert (shown.branch, shown.parent_branch, shown.fork_seq) == (
            known.number,
            known.parent,
            known.fork_seq,
        )

    @rule(where=PICK, number=st.sampled_from([1, 2, 3, 4, 5, NO_BRANCH]))
    def select_branch(self, where: int, number: int) -> None:
        conversation = self.conversation(where)
        request = pb.SelectBranchRequest(
            conversation_id=conversation.conversation_id, branch=number
        )
        self.attempt("SelectBranch", request, lambda: conversation.select_branch(number))
        self.check(conversation)

    @precondition(lambda self: len(self.conversations) < MAX_CONVERSATIONS)
    @rule(where=PICK, which=PICK, branch=st.sampled_from([0, 0, 0, 1, 2, NO_BRANCH]))
    def fork(self, where: int, which: int, branch: int) -> None:
        conversation = self.conversation(where)
        event = self.last_kept(conversation, which, branch)
        new_id = self.new_id()
        request = conversation_pb.ForkConversationRequest(
            conversation_id=conversation.conversation_id,
            event_id=event.event_id if event else "",
            branch=branch,
            new_conversation_id=new_id,
        )
        done = self.attempt(
            "ForkConversation", request, lambda: conversation.fork(new_id, event, branch)
        )
        if done:
            new, answer = done
            assert answer.event_count == len(new.events)
            self.conversations.append(new)
            self.learn_copies(new)
            self.check(new, *new.events[-1:])
        self.check(conversation)

    def learn_copies(self, new: Conversation) -> None:
        request = pb.ListEventsRequest(conversation_id=new.conversation_id, page_size=1_000)
        shown = self.call("ListEvents", request).events
        for event, copy in zip(new.events, shown, strict=True):
            event.event_id = copy.event_id
