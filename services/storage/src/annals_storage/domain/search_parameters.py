"""Every number that decides how a search finds and orders events, with what it may be.

The defaults were chosen on the figures of docs/retrieval.md. A tenant may have others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from annals_common.errors import FieldInvalidError

MAX_CANDIDATES = 2_000
"""Chunks that each signal is asked for at most."""
MAX_COMPARED_EVENTS = 300
"""By late interaction, however many hits are asked for: each costs 3 KiB to read at most."""


@dataclass(frozen=True, slots=True)
class SearchParameters:
    """How a hybrid search ranks. Bonuses are in parts of the greatest score of an event's own.

    `first_…`: weights of the first stage; the others are of the second. Weights of a stage are
    divided by their sum. `neighbor_share`: what an event gains of the scores beside it;
    `neighbor_decay`: what is left of that with every event further, up to `neighbor_distance`.
    Events of more than `neighbor_full_tokens` gain less, in proportion; 0: all gain alike.
    """

    candidates_per_hit: int = 4
    min_candidates: int = 200
    compared_events: int = 100
    first_dense_weight: float = 0.4
    first_bm25_weight: float = 0.6
    dense_weight: float = 0.1
    bm25_weight: float = 0.3
    maxsim_weight: float = 0.6
    neighbor_share: float = 0.3
    neighbor_decay: float = 0.7
    neighbor_distance: int = 3
    neighbor_full_tokens: int = 80
    speaker_bonus: float = 0.3
    time_bonus: float = 0.4

    @property
    def neighbor_shares(self) -> tuple[float, ...]:
        """What an event gains of each neighbour's score, by distance."""
        return tuple(
            self.neighbor_share * self.neighbor_decay**steps
            for steps in range(self.neighbor_distance)
        )

    def candidates(self, limit: int) -> int:
        """Return how many chunks each signal is asked for when `limit` hits are wanted."""
        wanted = max(self.min_candidates, limit * self.candidates_per_hit)
        return min(wanted, MAX_CANDIDATES)

    def depth(self, limit: int) -> int:
        """Return how many events are compared by late interaction for `limit` hits."""
        return min(max(self.compared_events, limit), MAX_COMPARED_EVENTS)


class Bounds(NamedTuple):
    """What a parameter may be, both ends included."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value is allowed; NaN is not."""
        return self.low <= value <= self.high


Overrides = Mapping[str, float | None]
"""Values by the name of the parameter."""


DEFAULTS = SearchParameters()
_SHARE = Bounds(0, 1)
BOUNDS: Mapping[str, Bounds] = {
    "candidates_per_hit": Bounds(1, 20),
    "min_candidates": Bounds(10, MAX_CANDIDATES),
    "compared_events": Bounds(10, MAX_COMPARED_EVENTS),
    "first_dense_weight": _SHARE,
    "first_bm25_weight": _SHARE,
    "dense_weight": _SHARE,
    "bm25_weight": _SHARE,
    "maxsim_weight": _SHARE,
    "neighbor_share": _SHARE,
    "neighbor_decay": _SHARE,
    "neighbor_distance": Bounds(0, 10),
    "neighbor_full_tokens": Bounds(0, 100_000),
    "speaker_bonus": _SHARE,
    "time_bonus": _SHARE,
}
STAGES = (
    ("first_dense_weight", "first_bm25_weight"),
    ("dense_weight", "bm25_weight", "maxsim_weight"),
)
"""Weights of which at least one must be more than 0."""
_COUNTS = frozenset(field.name for field in fields(SearchParameters) if field.type == "int")
"""The parameters that are whole numbers."""


def parameters_of(overrides: Overrides) -> tuple[SearchParameters, frozenset[str]]:
    """Return the defaults with a tenant's own values, and the names of those.

    Values of None, names this version does not know and values it does not take are left out.
    """
    own = {
        name: int(value) if name in _COUNTS else float(value)
        for name, value in overrides.items()
        if value is not None and name in BOUNDS and BOUNDS[name].holds(value)
    }
    return replace(DEFAULTS, **own), frozenset(own)  # type: ignore[arg-type]


def check_stages(parameters: SearchParameters) -> None:
    """Raises FieldInvalidError when all weights of a stage are 0."""
    for names in STAGES:
        if not any(getattr(parameters, name) for name in names):
            raise FieldInvalidError(
                f"parameters.{names[-1]}", f"{', '.join(names)} must not all be 0", 0
            )
