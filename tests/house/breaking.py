"""Refuses a change of the API that breaks its callers: `python -m tests.house.breaking`.

Compares proto/ with the last tag, or with main where there is none.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> int:
    reference = base_reference()
    if reference is None:
        sys.stderr.write("buf breaking: no git history to compare with\n")
        return 0
    against = f".git#ref={reference}"
    return subprocess.run(
        ["buf", "breaking", "--against", against], cwd=ROOT, check=False
    ).returncode


def base_reference() -> str | None:
    """The commit whose API callers rely on."""
    if tag := git("describe", "--tags", "--abbrev=0"):
        return tag
    return next(
        (found for name in ("origin/main", "main") if (found := git("rev-parse", name))), None
    )


def git(*args: str) -> str | None:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
