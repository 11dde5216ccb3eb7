"""Why the local services do not start."""

from __future__ import annotations


class LocalError(Exception):
    """Its text tells the user what to do; no traceback is needed."""


class AlreadyRunningError(LocalError):
    """Another supervisor holds the directory."""


class PortTakenError(LocalError):
    """A port that was asked for is in use."""


class StartError(LocalError):
    """A process ended or did not become ready in time."""
