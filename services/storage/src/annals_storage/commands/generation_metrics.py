"""Metrics of the generations of the mirror."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Gauge

from annals_storage.domain.generations import GenerationState, MirrorGeneration

GENERATION = Gauge(
    "annals_mirror_generation", "Number of the generation in this state, 0 without.", ["state"]
)
SOURCES_TOTAL = Gauge(
    "annals_mirror_build_sources_total", "Events and memories a new generation is built of."
)
SOURCES_DONE = Gauge(
    "annals_mirror_build_sources_done", "Of those, how many were taken up; 0 without a build."
)


def show(generations: Iterable[MirrorGeneration]) -> None:
    """Have the metrics tell of these."""
    by_state = {each.state: each for each in generations}
    for state in (GenerationState.BUILDING, GenerationState.SERVING, GenerationState.RETIRED):
        GENERATION.labels(state.value).set(by_state[state].number if state in by_state else 0)
    building = by_state.get(GenerationState.BUILDING)
    SOURCES_TOTAL.set((building.sources_total or 0) if building else 0)
    SOURCES_DONE.set(building.sources_done if building else 0)
