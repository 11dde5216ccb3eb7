"""JSON logs. No content of events and no secrets are ever logged."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog
from structlog.tracebacks import ExceptionDictTransformer

_TRACEBACKS = ExceptionDictTransformer(show_locals=False)
"""Local variables would carry keys and content into the logs."""

LogLevel = Literal["debug", "info", "warning", "error"]


def configure_logging(service: str, level: LogLevel = "info") -> None:
    """Write one JSON object a line to standard error, with the ids bound to the current call."""
    numeric = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(_TRACEBACKS),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(numeric),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
