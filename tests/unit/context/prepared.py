"""Generated choices, and what background work may have prepared: nasty labels and all."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from tests.unit.context.histories import STARTS_AT, texts

from annals_context.domain.material import Period, Summary, SummaryLevel, Topic
from annals_context.domain.options import IndexOptions, SnippetStrategy, StrategyName

options = st.builds(
    IndexOptions,
    strategy=st.sampled_from(StrategyName),
    snippet_chars=st.sampled_from([1, 20, 100, 1_000]),
    snippet_strategy=st.sampled_from(SnippetStrategy),
    max_index_tokens=st.sampled_from([0, 50, 500, 10_000]),
    min_cluster_size=st.sampled_from([1, 3]),
    include_tool_calls=st.sampled_from([True, True, True, False]),
    summary_ratio=st.sampled_from([0.0, 0.3, 1.0]),
    chunk_threshold_tokens=st.sampled_from([1, 30, 4_000]),
)
_ids = st.uuids().map(str)
_moments = st.integers(0, 100_000).map(lambda hours: STARTS_AT + timedelta(hours=hours))
_counts = st.integers(0, 10_000)
topics = st.builds(
    Topic,
    topic_id=_ids,
    label=texts,
    event_count=_counts,
    first_at=_moments,
    last_at=_moments,
    summary=texts,
    samples=st.lists(texts, max_size=4).map(tuple),
)
periods = st.builds(
    Period,
    name=st.sampled_from(["today", "this_week", "this_month", "older", "unheard of"]),
    event_count=_counts,
    topics=st.lists(st.tuples(_ids, texts, _counts), max_size=9).map(tuple),
)
summaries = st.builds(
    Summary,
    summary_id=_ids,
    level=st.sampled_from(SummaryLevel),
    text=texts,
    first_seq=st.integers(1, 50),
    last_seq=st.integers(50, 99),
    created_at=st.just(STARTS_AT),
)
