"""Runs a module for a supervisor: `python -m annals_local.guarded MODULE …`.

The module is imported at once and begins when its settings come as one line of JSON on
standard input, so that processes that wait for each other still load side by side. Whichever
way the supervisor dies, that pipe breaks, and the module gets the SIGTERM that the supervisor
can no longer send.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import time

GRACE_S = 30.0


def main() -> None:
    """Call `main` of the module named by the first argument."""
    name, *arguments = sys.argv[1:]
    module = importlib.import_module(name)
    line = sys.stdin.buffer.readline()
    if not line:
        return
    os.environ.update(json.loads(line))
    threading.Thread(target=_end_with_supervisor, daemon=True).start()
    sys.argv = [name, *arguments]
    module.main()


def _end_with_supervisor() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    main()
