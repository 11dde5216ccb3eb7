"""Metrics of the indexer."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

OUTBOX_PENDING = Gauge("annals_outbox_pending", "Changes that wait to be mirrored.")
LANE_PENDING = Gauge(
    "annals_outbox_lane_pending", "Changes that wait to be mirrored, by lane.", ["priority"]
)
LANE_LAG_SECONDS = Gauge(
    "annals_outbox_lane_lag_seconds", "Age of the oldest waiting change, by lane.", ["priority"]
)
OUTBOX_PARKED = Gauge("annals_outbox_parked", "Changes parked after repeated failures.")
OUTBOX_LAG_SECONDS = Gauge("annals_outbox_lag_seconds", "Age of the oldest waiting change.")
INDEXED_EVENTS = Counter("annals_indexer_events_total", "Events mirrored.")
EMBEDDED_CHUNKS = Counter("annals_indexer_chunks_total", "Chunks embedded.")
REUSED_CHUNKS = Counter(
    "annals_indexer_reused_chunks_total", "Chunks mirrored with an embedding made before."
)
TRUNCATED_EVENTS = Counter(
    "annals_indexer_truncated_events_total", "Events mirrored whose last words were left out."
)
EMBED_SECONDS = Histogram(
    "annals_indexer_embed_seconds", "Time to embed one batch.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)  # fmt: skip
STAGE_SECONDS = Histogram(
    "annals_indexer_stage_seconds", "Time of one call of a stage.", ["stage"],
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60),
)  # fmt: skip
DRIFT_POINTS = Gauge(
    "annals_mirror_drift_points", "Points too many or too few when tenants were last counted."
)
DRIFT_CHECKED_TENANTS = Counter("annals_mirror_checked_tenants_total", "Tenants counted.")
INDEXER_FAILURES = Counter("annals_indexer_failures_total", "Batches that failed.", ["kind"])
