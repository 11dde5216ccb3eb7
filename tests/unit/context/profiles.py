"""How many examples a property is tried with: ANNALS_HYPOTHESIS_PROFILE, a name or a number."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_EXAMPLES = {"default": 150, "thorough": 3_000, "big": 50_000}

_chosen = os.environ.get("ANNALS_HYPOTHESIS_PROFILE", "default")

PROFILE = settings(
    max_examples=_EXAMPLES.get(_chosen) or int(_chosen),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
