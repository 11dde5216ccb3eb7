"""docs/contexts.md is current, and what it shows holds."""

from __future__ import annotations

import pytest
from tests.golden.context.harbour import FACTS
from tests.golden.context.page import BUDGET_TOKENS, PAGE, RESERVE_TOKENS, SIZES, context_of, page


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "make contexts-page, and read it"


STRATEGIES = ("full", "snippet", "clustered", "hierarchical")


@pytest.mark.parametrize(("n_events", "strategy"), list(zip(SIZES, STRATEGIES, strict=True)))
def test_the_same_question_finds_its_answer_at_every_size(n_events: int, strategy: str):
    context = context_of(n_events)
    assert context.strategy == strategy
    assert context.total_tokens <= BUDGET_TOKENS - RESERVE_TOKENS
    assert all(fact in context.payload for fact in FACTS.values())
