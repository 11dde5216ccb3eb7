"""Calls made at once."""

from __future__ import annotations


class first_error:  # noqa: N801 - reads as a statement
    """Raises the first error of a task group as itself."""

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BaseExceptionGroup):
            raise error.exceptions[0] from error
