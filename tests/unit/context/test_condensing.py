"""Which words of a long event are shown."""

from __future__ import annotations

import json

import pytest
from tests.unit.context.checks import check_context, decoded
from tests.unit.context.counters import O200K
from tests.unit.context.histories import message, placed, tool_call, tool_result

from annals_context.domain.assembly import assemble
from annals_context.domain.events import Event, Role
from annals_context.domain.key_sentences import condensed, core_start
from annals_context.domain.model import (
    ContextRequest,
    DetailLevel,
    Hit,
    PayloadFormat,
    PreparedContext,
)
from annals_context.domain.options import IndexOptions, SnippetStrategy, StrategyName

REPORT = (
    "Hello everybody. Hope you had a nice weekend. The migration of the billing database failed. "
    "The billing database ran out of disk space during the migration. Lunch is at noon."
)
CORE = "The migration of the billing database failed."


def shown(events: list[Event], budget_tokens: int = 400, **members) -> PreparedContext:
    options = IndexOptions(strategy=StrategyName.SNIPPET, **members.pop("options", {}))
    members = {"recent": events[-1:], "others": events[:-1], **members}
    wanted = ContextRequest(
        counter=O200K,
        budget_tokens=budget_tokens,
        total_events=len(events),
        options=options,
        **{"payload_format": PayloadFormat.TEXT, **members},
    )
    context = assemble(wanted)
    check_context(wanted, context)
    return context


def test_the_core_is_the_sentence_most_like_the_whole():
    assert REPORT[core_start(REPORT) :].startswith(CORE)


@pytest.mark.parametrize("text", ["", " ", "word", "...", "。。。", "a" * 50_000, "\n" * 9])
def test_a_text_without_sentences_has_a_core_all_the_same(text: str):
    assert 0 <= core_start(text) <= len(text)
    assert len(condensed(text, max_chars=20)) <= 20


def test_the_core_of_a_chunk_lies_within_it():
    assert core_start(REPORT, 0, 40) < 40


@pytest.mark.parametrize("max_chars", [10, 60, 140, 200, 1_000])
def test_a_condensed_text_keeps_sentences_in_their_order_within_its_length(max_chars: int):
    words = condensed(REPORT, max_chars=max_chars)
    assert len(words) <= max_chars
    parts = [part.strip() for part in words.split("…") if part.strip()]
    places = [REPORT.index(part[:5]) for part in parts]
    assert places == sorted(places)
    assert max_chars != 60 or words == f"… {CORE} …"


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        (SnippetStrategy.FIRST, '"Hello everybody. Hope you had'),
        (SnippetStrategy.SEMANTIC_CORE, '"…The migration of the billing'),
        (SnippetStrategy.SUMMARY, f'"… {CORE} …"'),
    ],
)
@pytest.mark.parametrize("payload_format", PayloadFormat)
def test_each_strategy_shows_its_part_in_lines_and_in_the_window(
    strategy: SnippetStrategy, words: str, payload_format: PayloadFormat
):
    options = {"snippet_strategy": strategy, "snippet_chars": 60}
    wanted = {"options": options, "payload_format": payload_format}
    line = shown(placed([message(REPORT), message("ok")]), 75, **wanted)
    asides = " ".join(f"Aside{n} matters{n} little{n}." for n in range(60))
    talk = placed([message("?"), message(f"{REPORT} {asides}", Role.ASSISTANT)])
    window = shown(talk, 110, **wanted)
    assert DetailLevel.SNIPPET in {item.detail for item in line.items}
    assert words in decoded(line)
    assert words[1:-1] in decoded(window) or strategy is SnippetStrategy.SUMMARY


def test_a_found_event_shows_the_core_of_its_chunk():
    text = f"{REPORT} " + "Nothing else happened at all that day. " * 30
    events = placed([message(text), message("ok")])
    start = text.index("Nothing")
    context = shown(
        events,
        80,
        options={"snippet_strategy": SnippetStrategy.SEMANTIC_CORE},
        relevant=[Hit(events[0], 0.9, start, start + 200)],
    )
    assert '"…Nothing else' in context.payload


def called(result: str) -> list[Event]:
    return placed(
        [message("q"), tool_call("a"), tool_result("a", result), message("so", Role.ASSISTANT)]
    )


def test_a_giant_result_is_cut_short_with_its_handle_and_its_call_stays_as_it_is():
    events = called("row of a table " * 400)
    context = shown(
        events,
        50_000,
        payload_format=PayloadFormat.OPENAI_CHAT,
        options={"chunk_threshold_tokens": 500},
        recent=events,
    )
    details = {item.seq: item.detail for item in context.items}
    assert details[2] is DetailLevel.FULL
    assert details[3] is DetailLevel.SNIPPET
    assert 'get_message_with_chunks("#3")' in context.payload.replace('\\"', '"')


def test_the_newest_event_is_not_cut_for_its_size():
    events = called("row of a table " * 400)[:3]
    wanted = {"recent": events, "others": ()}
    context = assemble(
        ContextRequest(
            counter=O200K,
            budget_tokens=50_000,
            total_events=3,
            options=IndexOptions(chunk_threshold_tokens=500),
            **wanted,
        )
    )
    [_, call, result] = json.loads(context.payload)
    assert call["tool_calls"][0]["id"] == result["tool_call_id"]
    assert result["content"] == events[-1].tool_result


def test_a_result_within_the_threshold_is_whole():
    events = called("row of a table " * 90)
    context = shown(events, 50_000, options={"chunk_threshold_tokens": 500})
    assert "get_message_with_chunks" not in context.payload
