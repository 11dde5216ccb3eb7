"""Runs a module until its supervisor is gone: `python -m annals_local.guarded MODULE …`.

The supervisor holds the other end of standard input. However it dies, the pipe breaks, and
the module gets the SIGTERM that the supervisor can no longer send.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

GRACE_S = 30.0


def main() -> None:
    """Run the module named by the first argument as `python -m` would."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    module, *arguments = sys.argv[1:]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    main()
