"""The base of all errors that reach a caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc

MAX_ECHOED_VALUE_CHARS = 80


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field that is wrong: its path as in the request, and what to do."""

    field: str
    description: str


class AnnalsError(Exception):
    """Base of all errors that reach a caller.

    `metadata` values are strings and become `ErrorInfo.metadata`.
    """

    code: grpc.StatusCode = grpc.StatusCode.INTERNAL
    reason: str = "INTERNAL"
    retry_after_ms: int | None = None

    def __init__(
        self,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        violations: Sequence[FieldViolation] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.metadata = dict(metadata or {})
        self.violations = tuple(violations)


def echo(value: object) -> str:
    """Show a caller's value back to them: short, printable, on one line."""
    text = str(value)
    shown = text if len(text) <= MAX_ECHOED_VALUE_CHARS else f"{text[:MAX_ECHOED_VALUE_CHARS]}…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in shown)
