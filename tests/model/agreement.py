"""Compares what the service shows of a conversation with what the model knows of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message
from tests.model.records import Branch, Event, Observation
from tests.model.reference import Conversation
from tests.model.said import said_of
from tests.support.raw import Failure, Raw, outcome

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import memory_service_pb2 as memory_pb
from annals.storage.v1 import resources_pb2 as res

PAGE = 1_000
Facts = dict[str, Any]


async def agree(raw: Raw, conversation: Conversation) -> res.Conversation | None:
    """Fail where service and model differ; return the conversation when it is there."""
    if conversation.deleted:
        await agree_that_it_is_gone(raw, conversation.conversation_id)
        return None
    now, *_ = await asyncio.gather(
        _agree_on_conversation(raw, conversation),
        _agree_on_branches(raw, conversation),
        _agree_on_memories(raw, conversation),
        *(_agree_on_branch(raw, conversation, branch) for branch in (0, *conversation.branches)),
        _agree_on_all(raw, conversation),
    )
    return now


async def agree_that_it_is_gone(raw: Raw, conversation_id: str) -> None:
    """Fail unless a deleted or erased conversation answers like one that never was."""
    for name, request in (
        ("GetConversation", conversation_pb.GetConversationRequest),
        ("ListEvents", pb.ListEventsRequest),
        ("ListBranches", pb.ListBranchesRequest),
    ):
        answer = await outcome(raw.call(name, request(conversation_id=conversation_id)))
        assert isinstance(answer, Failure), f"{name} of what is gone: {answer}"
        assert answer.reason == "RESOURCE_NOT_FOUND", f"{name}: {answer}"


async def agree_on_history(raw: Raw, event: Event) -> None:
    """Fail unless the observations of an event are those the model made."""
    request = pb.ListObservationsRequest(event_id=event.event_id, page_size=PAGE)
    answer = await _call(raw, "ListObservations", request)
    newest_first = list(reversed(event.history))
    shown = [_observed(each) for each in answer.observations]
    assert shown == newest_first, f"observations of {event.event_id}: {shown} != {newest_first}"
    versions = [each.version for each in answer.observations]
    expected = [event.version - place for place in range(len(event.history))]
    assert versions == expected, f"versions of {event.event_id}: {versions} != {expected}"


def _observed(observation: pb.Observation) -> Observation:
    kind = pb.ObservationKind.Name(observation.kind).removeprefix("OBSERVATION_KIND_")
    return Observation(kind, said_of(observation.event), observation.idempotency_key)


async def _agree_on_conversation(raw: Raw, conversation: Conversation) -> res.Conversation:
    request = conversation_pb.GetConversationRequest(conversation_id=conversation.conversation_id)
    now: res.Conversation = (await _call(raw, "GetConversation", request)).conversation
    counters = conversation.counters()
    _same("counters", {name: getattr(now, name) for name in counters}, counters)
    status = res.ConversationStatus.Name(now.status).removeprefix("CONVERSATION_STATUS_")
    shown = (status, now.session_id, now.user_id)
    _same("state", shown, (conversation.status, conversation.session_id, conversation.user_id))
    if conversation.origin is not None:
        origin, event = conversation.origin
        assert now.forked_from.conversation_id == origin.conversation_id
        assert event is None or now.forked_from.event_id == event.event_id
    return now


async def _agree_on_branches(raw: Raw, conversation: Conversation) -> None:
    request = pb.ListBranchesRequest(conversation_id=conversation.conversation_id, page_size=PAGE)
    answer = await _call(raw, "ListBranches", request)
    shown = [_branch_facts(branch) for branch in answer.branches]
    _same("branches", shown, [_branch(conversation, each) for each in _branches(conversation)])


def _branches(conversation: Conversation) -> Sequence[Branch]:
    return list(conversation.branches.values())


def _branch_facts(branch: res.Branch) -> Facts:
    names = ("branch", "parent_branch", "fork_seq", "current", "last_seq", "event_count")
    return {name: getattr(branch, name) for name in names}


def _branch(conversation: Conversation, branch: Branch) -> Facts:
    own = [event for event in conversation.events if event.branch == branch.number]
    return {
        "branch": branch.number,
        "parent_branch": branch.parent,
        "fork_seq": branch.fork_seq,
        "current": conversation.current == branch.number,
        "last_seq": own[-1].seq if own else 0,
        "event_count": sum(event.counts for event in own),
    }


async def _agree_on_memories(raw: Raw, conversation: Conversation) -> None:
    request = memory_pb.ListMemoriesRequest(
        conversation_id=conversation.conversation_id, page_size=PAGE
    )
    answer = await _call(raw, "ListMemories", request)
    shown = {each.memory_id: (each.content, tuple(each.tags)) for each in answer.memories}
    known = {each.memory_id: (each.content, each.tags) for each in conversation.memories.values()}
    _same("memories", shown, known)


async def _agree_on_branch(raw: Raw, conversation: Conversation, branch: int) -> None:
    request = pb.ListEventsRequest(
        conversation_id=conversation.conversation_id, branch=branch, page_size=PAGE
    )
    shown = (await _call(raw, "ListEvents", request)).events
    _same_events(f"branch {branch}", shown, conversation.shown(branch), conversation)
    request.show_deleted = True
    request.order = pb.SORT_ORDER_DESCENDING
    everything = (await _call(raw, "ListEvents", request)).events
    view = conversation.view(branch)
    _same_events(f"branch {branch}, all", list(reversed(everything)), view, conversation)


async def _agree_on_all(raw: Raw, conversation: Conversation) -> None:
    request = pb.ListEventsRequest(
        conversation_id=conversation.conversation_id,
        all_branches=True,
        show_deleted=True,
        page_size=PAGE,
    )
    events = (await _call(raw, "ListEvents", request)).events
    _same_events("every branch", events, conversation.events, conversation)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


def _same_events(
    where: str, shown: Sequence[res.Event], known: Sequence[Event], conversation: Conversation
) -> None:
    _same(f"seqs of {where}", [event.seq for event in shown], [event.seq for event in known])
    for event, model in zip(shown, known, strict=True):
        same_event(event, model, conversation)


def same_event(shown: res.Event, model: Event, conversation: Conversation) -> None:
    """Fail unless the service shows the event as the model knows it."""
    _same(f"event {model.seq}", _facts(shown), _known(model, conversation))


def _facts(event: res.Event) -> Facts:
    return {
        "event_id": event.event_id,
        "conversation_id": event.conversation_id,
        "seq": event.seq,
        "branch": event.branch,
        "said": said_of(event),
        "tokens": event.token_count,
        "version": event.version,
        "turn": event.turn_key,
        "parent": event.parent_event_id,
        "origin": event.origin_event_id,
        "superseded_by": event.superseded_by_event_id,
        "deleted": event.HasField("delete_time"),
        "edited": event.HasField("edit_time"),
        "erased": event.HasField("erase_time"),
    }


def _known(event: Event, conversation: Conversation) -> Facts:
    turn_key = f"{conversation.conversation_id}:{event.turn_id}" if event.turn_id else ""
    return {
        "event_id": event.event_id,
        "conversation_id": conversation.conversation_id,
        "seq": event.seq,
        "branch": event.branch,
        "said": event.said,
        "tokens": 0 if event.erased else event.said.token_count,
        "version": event.version,
        "turn": turn_key,
        "parent": event.parent.event_id if event.parent else "",
        "origin": event.origin.event_id if event.origin else "",
        "superseded_by": event.superseded_by.event_id if event.superseded_by else "",
        "deleted": event.deleted,
        "edited": event.edited,
        "erased": event.erased,
    }


def _same(what: str, shown: object, known: object) -> None:
    assert shown == known, f"{what}: the service shows\n{shown}, the model knows\n{known}"


async def _call(raw: Raw, name: str, request: Message) -> Any:
    answer = await outcome(raw.call(name, request))
    assert not isinstance(answer, Failure), f"{name}({request}) → {answer}"
    return answer
