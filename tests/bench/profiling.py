"""A deterministic profile of the storage process. It slows Python code down two or three times
and counts neither PostgreSQL nor other threads: read it for shares, not for times.
"""

from __future__ import annotations

import pstats
import sys
from collections.abc import Callable

from tests.bench.stack import Stack, serving

SHOWN_FUNCTIONS = 45
OURS = r"/services/[a-z]+/src/annals_"


def profile_storage(stack: Stack, act: Callable[[], None]) -> None:
    """Do something with the services running; list to stderr what storage spent its time on."""
    path = stack.log_dir / "storage.profile"
    with serving(stack, profile_to=path):
        act()
    stats = pstats.Stats(str(path), stream=sys.stderr)
    stats.sort_stats("tottime").print_stats(SHOWN_FUNCTIONS)
    stats.sort_stats("cumulative").print_stats(OURS, SHOWN_FUNCTIONS)
