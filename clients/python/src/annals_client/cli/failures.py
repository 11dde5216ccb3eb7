"""Turns failures into one line that says what, which field, and what to do."""

from __future__ import annotations

from typing import Any

import click

from annals_client.errors import (
    AnnalsClientError,
    AnnalsRpcError,
    BudgetTooSmallError,
    DeadlineExceededError,
    InternalError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
)


class FriendlyGroup(click.Group):
    """A group whose commands never show a traceback for a failure we know."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; failures of the client become one line and exit code 1."""
        try:
            return super().invoke(ctx)
        except AnnalsClientError as error:
            raise click.ClickException(describe(error)) from error
        except UnicodeError as error:
            raise click.ClickException(in_words(error)) from error
        except ValueError as error:
            # What no message can carry, such as a number beyond 64 bits.
            raise click.UsageError(in_words(error)) from error
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise click.ClickException(f"{error.filename or 'i/o'}: {error.strerror}") from error


def in_words(error: AnnalsClientError | ValueError) -> str:
    """Write what a command could not do on one line."""
    if isinstance(error, AnnalsClientError):
        return describe(error)
    if isinstance(error, UnicodeError):
        return "the text is not valid Unicode (UTF-8)"
    return _line(str(error))


def describe(error: AnnalsClientError) -> str:
    """Write a failure on one line."""
    if not isinstance(error, AnnalsRpcError):
        return _line(str(error))
    advice = _advice(error)
    return _line(f"{_what(error)}; {advice}" if advice else _what(error))


def _what(error: AnnalsRpcError) -> str:
    if isinstance(error, UnavailableError) and not error.reason:
        return f"{error.service} does not answer ({error.method})"
    if isinstance(error, DeadlineExceededError):
        return f"{error.method}: not answered in time"
    fields = [f"{item.field}: {item.description}" for item in error.violations]
    return "; ".join(fields) or error.message or error.code.name


def _advice(error: AnnalsRpcError) -> str:
    if isinstance(error, UnavailableError) and not error.reason:
        return f"is it running? `make run` starts it, --{error.service} names another address"
    if isinstance(error, InternalError) and error.incident_id not in error.message:
        return f"quote incident {error.incident_id} to the operator"
    if isinstance(error, BudgetTooSmallError):
        return f"use --budget {error.minimum_budget_tokens} or more"
    return next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), "")


_ADVICE: dict[type[AnnalsRpcError], str] = {
    DeadlineExceededError: "allow more with --timeout SECONDS",
    UnauthenticatedError: "set ANNALS_API_KEY (or ANNALS_ADMIN_KEY for tenants) or --api-key",
    PermissionDeniedError: "use a key that may, such as ANNALS_ADMIN_KEY for tenants",
    NotFoundError: "check the id, and that the key belongs to its tenant",
}


def _line(text: str) -> str:
    return " ".join(text.split())
