"""One supervisor per directory."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from annals_local.errors import AlreadyRunningError


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock; the kernel lets go of it when the process ends, however it ends.

    Raises AlreadyRunningError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunningError(
                f"another annals-local runs in {path.parent}; "
                "stop it, or name another directory with --data-dir"
            ) from None
        yield
