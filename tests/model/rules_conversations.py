"""Conversations as a whole: made, put away, deleted, merged, erased; and their memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.model.agreement import agree_that_it_is_gone
from tests.model.machine import MAX_CONVERSATIONS, PICK, Machine, one_of
from tests.model.records import Memory
from tests.model.reference import Conversation
from tests.support.raw import Failure

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import erasure_service_pb2 as erasure_pb
from annals.storage.v1 import memory_service_pb2 as memory_pb
from annals.storage.v1 import resources_pb2 as res

SESSIONS = st.sampled_from(["", "a", "b"])


class ConversationRules(Machine):
    """Create, archive, delete, restore, merge."""

    @precondition(lambda self: len(self.conversations) < MAX_CONVERSATIONS)
    @rule(session=SESSIONS)
    def create(self, session: str) -> None:
        self.create_conversation(self.session(session))

    @rule(where=PICK)
    def archive(self, where: int) -> None:
        request = pb.ArchiveConversationRequest()
        self.change_conversation(
            where, "ArchiveConversation", request, lambda found: found.set_status("ARCHIVED")
        )

    @rule(where=PICK)
    def unarchive(self, where: int) -> None:
        away = [each for each in self.conversations if each.status != "ACTIVE"]
        conversation = one_of(away or self.conversations, where)
        request = pb.UpdateConversationRequest(
            conversation=res.Conversation(
                conversation_id=conversation.conversation_id,
                status=res.CONVERSATION_STATUS_ACTIVE,
            )
        )
        request.update_mask.paths.append("status")
        was = conversation.changes
        self.attempt("UpdateConversation", request, lambda: conversation.set_status("ACTIVE"))
        if not conversation.deleted and conversation.changes == was:
            conversation.changes += 1  # an update counts as a change, whatever it says
        self.check(conversation)

    @rule(where=PICK, sure=PICK)
    def delete_conversation(self, where: int, sure: int) -> None:
        if sure % 4 == 0:
            self.change_conversation(
                where,
                "DeleteConversation",
                pb.DeleteConversationRequest(),
                lambda found: found.set_deleted(deleted=True),
            )

    @rule(where=PICK)
    def restore_conversation(self, where: int) -> None:
        gone = [each for each in self.conversations if each.deleted]
        conversation = one_of(gone or self.conversations, where)
        self.change_conversation(
            self.conversations.index(conversation),
            "RestoreConversation",
            pb.RestoreConversationRequest(),
            lambda found: found.set_deleted(deleted=False),
        )

    @rule(session=st.sampled_from(["a", "b"]), user=st.sampled_from(["ann", "ann", "bob"]))
    def merge_session(self, session: str, user: str) -> None:
        name, user_id = self.session(session), f"{user}-{self.run_id}"
        request = pb.MergeSessionRequest(session_id=name, user_id=user_id)
        done = self.attempt("MergeSession", request, lambda: self.world.merge(name, user_id))
        moved = done[0] if done else []
        if done:
            assert done[1].moved_count == len(moved)
            assert done[1].user_id == user_id
        for conversation in moved:
            self.check(conversation)

    def session(self, name: str) -> str:
        return f"{name}-{self.run_id}" if name else ""

    def change_conversation(
        self, where: int, name: str, request: Any, change: Callable[[Conversation], None]
    ) -> None:
        conversation = self.conversation(where)
        request.conversation_id = conversation.conversation_id
        self.attempt(name, request, lambda: change(conversation))
        self.check(conversation)


class MemoryRules(Machine):
    """Memories stored and deleted."""

    @rule(where=PICK, tags=st.lists(st.sampled_from(["x", "y"]), unique=True, max_size=2))
    def store_memory(self, where: int, tags: list[str]) -> None:
        conversation = self.conversation(where)
        memory = Memory(self.new_id(), self.said("message").text, tuple(tags))
        request = memory_pb.StoreMemoryRequest(
            memory=res.Memory(
                memory_id=memory.memory_id,
                conversation_id=conversation.conversation_id,
                content=memory.content,
                tags=tags,
            )
        )
        self.attempt("StoreMemory", request, lambda: conversation.store_memory(memory))
        self.check(conversation)

    @precondition(lambda self: any(each.memories for each in self.conversations))
    @rule(where=PICK, which=PICK)
    def delete_memory(self, where: int, which: int) -> None:
        conversation = one_of([each for each in self.conversations if each.memories], where)
        memory = one_of(list(conversation.memories.values()), which)
        request: Message = memory_pb.DeleteMemoryRequest(memory_id=memory.memory_id)
        done = self.attempt("DeleteMemory", request, lambda: conversation.delete_memory(memory))
        if done:
            again = self.call("DeleteMemory", request)
            assert isinstance(again, Failure)
            assert again.reason == "RESOURCE_NOT_FOUND"
        self.check(conversation)


class ConversationErasureRules(Machine):
    """A conversation erased is as if it had never been."""

    @precondition(lambda self: len(self.conversations) > 1)
    @rule(where=PICK, sure=PICK)
    def erase_conversation(self, where: int, sure: int) -> None:
        if sure % 6:
            return
        conversation = self.conversation(where)
        request = erasure_pb.EraseConversationRequest(conversation_id=conversation.conversation_id)
        done = self.attempt("EraseConversation", request, lambda: None)
        assert done is not None
        receipt = done[1].receipt
        counts = {each.kind: each.count for each in receipt.counts}
        assert counts["events"] == sum(not event.erased for event in conversation.events)
        self.conversations.remove(conversation)
        self.run(agree_that_it_is_gone(self.tenant.raw, conversation.conversation_id))
        for other in self.conversations:
            self.check(other)
