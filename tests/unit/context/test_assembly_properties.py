"""For every conversation and every budget: it fits, it is whole, it is the same again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.context.checks import check_context
from tests.unit.context.counters import CL100K, INEXACT, O200K, LyingCounter
from tests.unit.context.histories import History, histories, texts
from tests.unit.context.prepared import options, periods, summaries, topics
from tests.unit.context.profiles import PROFILE

from annals_common.errors import BudgetTooSmallError
from annals_context.domain.assembly import assemble
from annals_context.domain.model import ContextRequest, PayloadFormat

budgets = st.one_of(st.integers(1, 200), st.integers(1, 2_000), st.integers(1, 20_000))


@st.composite
def requests(draw: st.DrawFn, history: History | None = None) -> ContextRequest:
    history = history or draw(histories())
    budget = draw(budgets)
    return ContextRequest(
        counter=draw(st.sampled_from([O200K, CL100K, INEXACT])),
        budget_tokens=budget,
        response_reserve_tokens=draw(st.sampled_from([0, 0, 1, budget // 3, budget - 1])),
        total_events=len(history.events),
        recent=history.recent,
        relevant=history.hits,
        others=history.others,
        system_prompt=draw(st.sampled_from(["", "Be brief.", "Follow the rules. " * 40])),
        current_message=draw(st.one_of(st.just(""), texts)),
        payload_format=draw(st.sampled_from(PayloadFormat)),
        options=draw(options),
        topics=draw(st.lists(topics, max_size=6)),
        periods=draw(st.lists(periods, max_size=4)),
        summaries=draw(st.lists(summaries, max_size=4)),
    )


@PROFILE
@given(requests())
def test_a_context_fits_and_is_accounted_for(request: ContextRequest):
    try:
        context = assemble(request)
    except BudgetTooSmallError as error:
        check_minimum(request, int(error.metadata["minimum_budget_tokens"]))
    else:
        check_context(request, context)
        assert assemble(request) == context


def check_minimum(request: ContextRequest, minimum: int) -> None:
    assert minimum > request.budget_tokens
    enough = replace(request, budget_tokens=minimum)
    check_context(enough, assemble(enough))
    with pytest.raises(BudgetTooSmallError):
        assemble(replace(request, budget_tokens=minimum - 1))


@PROFILE
@given(requests())
def test_the_minimum_is_the_smallest_budget_that_works(request: ContextRequest):
    reserve = request.response_reserve_tokens
    with pytest.raises(BudgetTooSmallError) as raised:
        assemble(replace(request, budget_tokens=reserve))
    check_minimum(
        replace(request, budget_tokens=reserve), int(raised.value.metadata["minimum_budget_tokens"])
    )


@PROFILE
@given(requests())
def test_the_budget_holds_when_joined_pieces_cost_more_than_their_sum(request: ContextRequest):
    lying = replace(request, counter=LyingCounter())
    try:
        context = assemble(lying)
    except BudgetTooSmallError:
        return
    check_context(lying, context)
