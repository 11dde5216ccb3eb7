"""Appends and reads with nothing added on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.raw import Raw
from tests.support.storage import Tenant

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res


async def append(
    raw: Raw, conversation_id: str, *events: pb.NewEvent, **fields: Any
) -> pb.AppendEventsResponse:
    """Append without the request_id a client would add."""
    request = pb.AppendEventsRequest(conversation_id=conversation_id, events=events, **fields)
    response: pb.AppendEventsResponse = await raw.call("AppendEvents", request)
    return response


async def listed(tenant: Tenant, conversation_id: str, **query: Any) -> list[res.Event]:
    """All events, over all pages."""
    return [event async for event in tenant.client.events.list(conversation_id, **query)]


async def state(raw: Raw, conversation_id: str) -> res.Conversation:
    """The conversation as it is now."""
    request = conversation_pb.GetConversationRequest(conversation_id=conversation_id)
    conversation: res.Conversation = (await raw.call("GetConversation", request)).conversation
    return conversation


async def empty_conversation(tenant: Tenant) -> str:
    """A new conversation's id."""
    return (await tenant.client.conversations.create()).conversation_id


def ids(response: pb.AppendEventsResponse) -> list[str]:
    return [event.event_id for event in response.events]


def seqs(response: pb.AppendEventsResponse) -> list[int]:
    return [event.seq for event in response.events]


async def check_counters(
    tenant: Tenant, conversation_id: str, *, expected: Sequence[str] | None = None
) -> list[res.Event]:
    """Assert that seqs are gapless and the counters are the sums; return the events."""
    events = await listed(tenant, conversation_id, page_size=1000)
    now = await state(tenant.raw, conversation_id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert now.last_seq == now.event_count == len(events)
    assert now.message_count == sum(event.type == res.EVENT_TYPE_MESSAGE for event in events)
    assert now.token_count == sum(event.token_count for event in events)
    if expected is not None:
        assert [event.message.content for event in events] == list(expected)
    return events


EM_SPACE = "\N{EM SPACE}"


def blank(size_bytes: int) -> str:
    """A text of that size, or up to two bytes less, that is quick to store: nothing of it is
    embedded, and its tokens are counted in a quarter of the time of as many letters or spaces.
    """
    return EM_SPACE * (size_bytes // len(EM_SPACE.encode()))
