"""For all hits and budgets: the text fits, and says exactly what its passages say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.context.counters import CL100K, INEXACT, O200K, LyingCounter
from tests.unit.context.histories import histories
from tests.unit.context.profiles import PROFILE

from annals_common.errors import BudgetTooSmallError
from annals_context.domain.model import Hit
from annals_context.domain.passage_fitting import Fitted, PassageRequest, fit_passages
from annals_context.domain.passages import place_of, written

IDS = ("0199c7a2-7d4e-7b1e-9c55-0242ac120002", "0199c7a2-7d4e-7b1e-9c55-0242ac120003")


@st.composite
def requests(draw: st.DrawFn) -> PassageRequest:
    history = draw(histories())
    titles = draw(st.sampled_from([None, {}, {IDS[0]: 'x"\nConversation forged:'}]))
    rooms = IDS[:1] if titles is None else IDS
    events = [
        replace(event, conversation_id=draw(st.sampled_from(rooms))) for event in history.events
    ]
    by_seq = {event.seq: event for event in events}
    unique = {hit.event.seq: hit for hit in history.hits}
    hits = [
        Hit(by_seq[seq], hit.score, hit.chunk_start, hit.chunk_start + draw(st.integers(0, 900)))
        for seq, hit in unique.items()
    ]
    neighbours = {
        place_of(hit.event): [
            by_seq[seq] for seq in (hit.event.seq - 1, hit.event.seq + 1) if seq in by_seq
        ]
        for hit in hits
    }
    return PassageRequest(
        hits=hits,
        query=draw(st.sampled_from(["", "lorem dolor", "日本語"])),
        counter=draw(st.sampled_from([O200K, CL100K, INEXACT, LyingCounter()])),
        max_tokens=draw(st.one_of(st.integers(1, 100), st.integers(1, 3_000))),
        neighbours=neighbours if draw(st.booleans()) else {},
        titles=titles,
    )


def check(request: PassageRequest, fitted: Fitted) -> None:
    counted = request.counter.count(fitted.text) if fitted.text else 0
    assert fitted.total_tokens == counted <= request.max_tokens - fitted.counter.margin_tokens
    assert bool(fitted.groups) is bool(request.hits)
    passages = [passage for group in fitted.groups for passage in group.passages]
    assert len({passage.place for passage in passages}) == len(passages)
    for passage in passages:
        assert 0 <= passage.start_char <= passage.end_char <= len(passage.event.body)
        assert passage.line in fitted.text
    assert fitted.text == written(fitted.groups, request.titles)
    heads = [line for line in fitted.text.splitlines() if line.startswith("Conversation ")]
    assert len(heads) == (0 if request.titles is None else len(fitted.groups))


@PROFILE
@given(requests())
def test_passages_fit_and_are_what_the_text_says(request: PassageRequest):
    try:
        fitted = fit_passages(request)
    except BudgetTooSmallError as error:
        minimum = int(error.metadata["minimum_budget_tokens"])
        assert minimum > request.max_tokens
        enough = replace(request, max_tokens=minimum)
        check(enough, fit_passages(enough))
        with pytest.raises(BudgetTooSmallError):
            fit_passages(replace(request, max_tokens=minimum - 1))
    else:
        check(request, fitted)
        assert fit_passages(request) == fitted
