"""What searches find must be what is in view, whatever was done before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tests.model.records import Event
from tests.model.reference import Conversation
from tests.support.raw import Raw

from annals.storage.v1 import memory_service_pb2 as memory_pb
from annals.storage.v1 import search_service_pb2 as pb

WORD = re.compile(r"zq\d+x")
SAMPLE = 4
TIMEOUT_S = 60.0


async def agree_on_searches(
    raw: Raw, conversation: Conversation, erased_texts: Sequence[str]
) -> None:
    """Search for words of the conversation, present and former; wait for the indexer first."""
    present = [event.said.text for event in _sample(conversation)]
    for text in (*present, *_former_texts(conversation), *erased_texts[-SAMPLE:]):
        await _finds_what_is_in_view(raw, conversation, text)
    await _agree_on_memories(raw, conversation)


def _sample(conversation: Conversation) -> list[Event]:
    """Some of every kind: shown, changed, deleted, on another branch."""
    known = [event for event in conversation.events if not event.erased]
    changed = [event for event in known if event.version > 1]
    unusual = [event for event in known if event not in conversation.shown()]
    return [*known[-SAMPLE:], *changed[-SAMPLE:], *unusual[-SAMPLE:]]


def _former_texts(conversation: Conversation) -> list[str]:
    """What events said before they were edited, and say no more."""
    now = {event.said.text for event in conversation.events}
    former = _all_texts(conversation.events)
    return [text for text in former if text not in now][-SAMPLE:]


def _all_texts(events: Sequence[Event]) -> Iterator[str]:
    return (each.said.text for event in events for each in event.history)


async def _finds_what_is_in_view(raw: Raw, conversation: Conversation, text: str) -> None:
    """The same words may have been said twice: by a retry without a key."""
    match = WORD.search(text)
    assert match, text
    request = pb.SearchEventsRequest(
        query=match[0],
        filter=pb.SearchFilter(conversation_ids=[conversation.conversation_id]),
        mode=pb.SEARCH_MODE_LEXICAL,
        limit=100,
        freshness=pb.SEARCH_FRESHNESS_READ_YOUR_WRITES,
    )
    answer = await raw.call("SearchEvents", request, timeout_s=TIMEOUT_S)
    assert not answer.degraded, answer
    found = {hit.event_id for hit in answer.hits}
    shown = {event.event_id for event in conversation.shown() if event.said.text == text}
    assert found == shown, f"{match[0]}: a search finds {found}, in view are {shown}"


async def _agree_on_memories(raw: Raw, conversation: Conversation) -> None:
    for memory in list(conversation.memories.values())[-SAMPLE:]:
        request = memory_pb.SearchMemoriesRequest(
            conversation_ids=[conversation.conversation_id],
            query=memory.content,
            top_k=100,
            freshness=pb.SEARCH_FRESHNESS_READ_YOUR_WRITES,
        )
        answer = await raw.call("SearchMemories", request, timeout_s=TIMEOUT_S)
        assert not answer.degraded, answer
        found = {hit.memory.memory_id for hit in answer.hits}
        assert memory.memory_id in found, f"{memory.content} is not found"
        assert found <= set(conversation.memories), "a deleted memory is found"
