"""How long a context waits for what it could do without."""

from __future__ import annotations

from dataclasses import replace

from annals_context.ports import Caller

PATIENT_SHARE = 0.6
"""Of the time left, how much may pass in waiting: the rest must do without."""


def within(caller: Caller, timeout_s: float) -> Caller:
    """Return the caller with at most `timeout_s`, and time left to answer without it."""
    if caller.timeout_s is not None:
        timeout_s = min(timeout_s, caller.timeout_s * PATIENT_SHARE)
    return replace(caller, timeout_s=timeout_s)
