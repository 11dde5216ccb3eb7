"""What the supervisor does, for people on stderr and as JSON in its log."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import click
import structlog


def open_journal(path: Path) -> None:
    """Send the supervisor's log lines to both."""
    file = path.open("a", encoding="utf-8", buffering=1)

    def write(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        file.write(json.dumps(event) + "\n")
        return _for_people(event)

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            write,
        ],
        logger_factory=lambda *_: _Stderr(),
    )


def _for_people(event: MutableMapping[str, Any]) -> str:
    fields = {name: value for name, value in event.items() if name not in _NOT_SHOWN}
    return " ".join([str(event["event"]), *(f"{name}={value}" for name, value in fields.items())])


_NOT_SHOWN = {"event", "level", "timestamp"}


class _Stderr:
    def msg(self, text: str) -> None:
        click.echo(text, err=True)

    debug = info = warning = error = msg
