"""Metrics of the cache of assembled contexts."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

ANSWERS = Counter(
    "annals_context_cache_answers_total",
    "Contexts by where they came from: process, shared, or none: assembled anew.",
    ["tier"],
)
PUTS = Counter(
    "annals_context_cache_puts_total",
    "Contexts assembled anew, by what became of them: kept; too_large for the shared tier;"
    " changed: the conversation did meanwhile; unsettled: it waits to be indexed; degraded;"
    " crowded: too many wait to be kept; failed.",
    ["outcome"],
)
LOOKUP_FAILURES = Counter(
    "annals_context_cache_lookup_failures_total",
    "Lookups that storage did not answer; the context was assembled anew.",
)
BYTES = Gauge(
    "annals_context_cache_bytes",
    "What this process keeps: contexts, and payloads to compare with.",
    ["kind"],
)
EVICTIONS = Counter(
    "annals_context_cache_evictions_total",
    "What this process let go of, by age or for size.",
    ["kind", "reason"],
)
SHARED_PREFIX = Histogram(
    "annals_context_shared_prefix_ratio",
    "Part of a context's bytes that its previous version begins with too.",
    buckets=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0),
)
