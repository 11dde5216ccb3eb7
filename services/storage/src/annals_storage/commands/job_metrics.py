"""What waits of background work, as metrics."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from prometheus_client import Gauge

from annals_common.cancellation import pause
from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.jobs import JobKind, JobTotals
from annals_storage.ports.jobs import JobBacklogs

PENDING = Gauge("annals_jobs_pending", "Jobs that are due or being worked off.", ["kind"])
PARKED = Gauge("annals_jobs_parked", "Jobs given up after repeated failures.", ["kind"])
LAG_SECONDS = Gauge("annals_jobs_lag_seconds", "Age of the oldest pending job.", ["kind"])
MEASURE_SECONDS = 5.0


async def measure_jobs(jobs: JobBacklogs) -> None:
    """Keep the figures of jobs true until cancelled."""
    while True:
        # After a failure the next look comes soon enough.
        with suppress(DependencyUnavailableError, TimeoutError):
            _show(await jobs.totals())
        await pause(MEASURE_SECONDS)


def _show(found: Sequence[JobTotals]) -> None:
    totals = {each.kind: each for each in found}
    for kind in JobKind:
        now = totals.get(kind, JobTotals(kind, pending=0, parked=0, lag_seconds=0.0))
        PENDING.labels(kind.value).set(now.pending)
        PARKED.labels(kind.value).set(now.parked)
        LAG_SECONDS.labels(kind.value).set(now.lag_seconds)
