"""What every rule shares: the tenant, the model of it, and how a step is taken and checked."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

from google.protobuf.message import Message
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize
from tests.model.agreement import agree, agree_on_history, same_event
from tests.model.mirror import agree_on_searches
from tests.model.records import Event, RefusedError, Stored
from tests.model.reference import Conversation, World
from tests.model.said import Said
from tests.support.raw import Failure, outcome
from tests.support.storage import Tenant

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import resources_pb2 as res

MAX_CONVERSATIONS = 5
MAX_BRANCHES = 5
SEARCHED = 2
"""Conversations to search at the end of an example."""
PROGRESS_EVERY = 250
KINDS = ("message", "message", "message", "tool_call", "tool_result", "system")
PICK = st.integers(0, 199)
"""Stands for one of however many there are."""
T = TypeVar("T")


class Steps:
    """Counts steps over all examples and says so in long runs."""

    taken = 0
    shown = bool(os.environ.get("STEPS"))

    @classmethod
    def count(cls) -> None:
        cls.taken += 1
        if cls.taken % PROGRESS_EVERY == 0:
            cls.say(f"{cls.taken} steps")

    @classmethod
    def say(cls, text: str) -> None:
        if cls.shown:
            sys.__stderr__.write(f"{text}\n")
            sys.__stderr__.flush()


class Machine(RuleBasedStateMachine):
    """One tenant; several conversations, each a model beside the real one."""

    loop: ClassVar[asyncio.AbstractEventLoop]
    tenant: ClassVar[Tenant]
    words: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.versions: dict[str, tuple[int, int]] = {}
        self.erased_texts: dict[str, list[str]] = {}
        self.run_id = uuid4().hex[:8]

    @initialize()
    def begin(self) -> None:
        self.create_conversation(session="")

    # Making --------------------------------------------------------------------------------

    def create_conversation(self, session: str) -> None:
        request = conversation_pb.CreateConversationRequest(
            conversation=res.Conversation(session_id=session)
        )
        created = self.call("CreateConversation", request).conversation
        conversation = Conversation(created.conversation_id, session)
        self.world.conversations.append(conversation)
        self.check(conversation)

    def said(self, kind: str, call_id: str = "") -> Said:
        """New words, never said before, among them one that a search can look for."""
        Machine.words += 1
        return Said(kind, f"parcel {self.word(Machine.words)} has arrived", call_id)

    @staticmethod
    def word(number: int) -> str:
        return f"zq{number}x"

    @staticmethod
    def new_id() -> str:
        return str(uuid4())

    # Choosing ------------------------------------------------------------------------------

    @property
    def conversations(self) -> list[Conversation]:
        return self.world.conversations

    def conversation(self, pick: int) -> Conversation:
        return one_of(self.conversations, pick)

    def event(self, conversation: Conversation, pick: int) -> Event:
        return one_of(conversation.events, pick)

    def has_events(self) -> bool:
        return any(conversation.events for conversation in self.conversations)

    def with_events(self, pick: int) -> Conversation:
        return one_of([each for each in self.conversations if each.events], pick)

    # Acting --------------------------------------------------------------------------------

    def call(self, name: str, request: Message) -> Any:
        return self.run(outcome(self.tenant.raw.call(name, request)))

    def attempt(self, name: str, request: Message, rule: Callable[[], T]) -> tuple[T, Any] | None:
        """Have model and service do it. None: both refuse, for the same reason."""
        Steps.count()
        answer = self.call(name, request)
        expected = _decided(rule)
        if isinstance(expected, RefusedError):
            assert isinstance(answer, Failure), f"{name} must be refused: {expected.reason}"
            assert answer.reason == expected.reason, f"{name}: {answer}, not {expected.reason}"
            return None
        assert not isinstance(answer, Failure), f"{name}({request}) → {answer}"
        return expected, answer

    def check(self, conversation: Conversation, *events: Event) -> None:
        """Compare everything that the service shows of it; versions only ever grow."""
        self.run(self._check(conversation, events))

    async def _check(self, conversation: Conversation, events: Sequence[Event]) -> None:
        now = await agree(self.tenant.raw, conversation)
        if now is None:
            return
        if events:
            histories = {event.event_id: event for event in events}
            await asyncio.gather(
                *(agree_on_history(self.tenant.raw, event) for event in histories.values())
            )
        version, changes = self.versions.get(conversation.conversation_id, (0, -1))
        grew = conversation.changes > changes
        assert now.version > version if grew else now.version == version, (
            f"version {version} → {now.version} while the model "
            f"{'changed' if grew else 'did not change'}"
        )
        self.versions[conversation.conversation_id] = (now.version, conversation.changes)

    def check_stored(self, conversation: Conversation, stored: Stored, shown: res.Event) -> None:
        if not stored.replayed:
            same_event(shown, stored.event, conversation)

    def teardown(self) -> None:
        if sys.exc_info()[0] is not None:
            return
        there = [each for each in self.conversations if each.events and not each.deleted]
        for conversation in sorted(there, key=lambda each: -len(each.events))[:SEARCHED]:
            erased = self.erased_texts.get(conversation.conversation_id, [])
            self.run(agree_on_searches(self.tenant.raw, conversation, erased))

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)


def _decided(rule: Callable[[], T]) -> T | RefusedError:
    try:
        return rule()
    except RefusedError as refusal:
        return refusal


def one_of(choices: Sequence[T], pick: int) -> T:
    return choices[pick % len(choices)]
