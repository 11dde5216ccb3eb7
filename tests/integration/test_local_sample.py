"""The bundled conversation: what it holds, read from its files."""

from collections import Counter
from itertools import pairwise

from annals.storage.v1 import event_service_pb2 as pb
from annals_local.sample import read_events

EVENTS = list(read_events())


def kind(event: pb.NewEvent) -> str:
    return str(event.WhichOneof("body"))


def test_it_has_every_kind_of_event_over_several_weeks() -> None:
    assert len(EVENTS) >= 300
    assert set(map(kind, EVENTS)) == {"message", "system", "error", "tool_call", "tool_result"}
    times = [event.event_time.ToDatetime() for event in EVENTS]
    assert times == sorted(times)
    assert (times[-1] - times[0]).days > 50


def test_every_tool_call_has_its_result_after_it() -> None:
    calls = [event.tool_call.tool_call_id for event in EVENTS if kind(event) == "tool_call"]
    results = [event.tool_result.tool_call_id for event in EVENTS if kind(event) == "tool_result"]

    assert sorted(calls) == sorted(set(calls)) == sorted(results)
    assert any(event.tool_result.is_error for event in EVENTS)
    open_calls: set[str] = set()
    for event in EVENTS:
        if kind(event) == "tool_result":
            open_calls.remove(event.tool_result.tool_call_id)
        elif kind(event) == "tool_call":
            open_calls.add(event.tool_call.tool_call_id)


def test_some_calls_are_parallel_and_one_message_is_a_long_document() -> None:
    assert ("tool_call", "tool_call") in pairwise(map(kind, EVENTS))
    assert max(len(event.message.content.split()) for event in EVENTS) >= 3000


def test_nobody_says_the_same_twice() -> None:
    said = Counter(event.message.content for event in EVENTS if kind(event) == "message")
    assert [text for text, times in said.items() if times > 1] == []
