"""Metrics of workers."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

JOBS = Counter("annals_worker_jobs_total", "Jobs by how they ended.", ["kind", "outcome"])
RUNNING = Gauge("annals_worker_jobs_running", "Jobs being worked off.", ["kind"])
JOB_SECONDS = Histogram(
    "annals_worker_job_seconds", "Time a job takes.", ["kind"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600),
)  # fmt: skip
