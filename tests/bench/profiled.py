"""`python -m tests.bench.profiled FILE serve`: storage under cProfile, without its imports."""

from __future__ import annotations

import cProfile
import sys

from annals_storage.__main__ import main

if __name__ == "__main__":
    path, command = sys.argv[1:]
    profile = cProfile.Profile()
    try:
        profile.runcall(main, [command], standalone_mode=False)
    finally:
        profile.dump_stats(path)
