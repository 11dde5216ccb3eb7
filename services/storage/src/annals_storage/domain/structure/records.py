"""Logs and tables: texts of records, one or more lines each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from annals_storage.domain.structure.seams import Seams

SAMPLED_LINES = 50
SAMPLED_CHARS = 16_384
LEAST_RECORDS = 3
LEAST_SHARE = 0.2
"""Of a log's lines begin a record; the others are traces of the stack and the like."""

_RECORD, _LINE, _INDENTED = 0, 1, 2
_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL"
_STAMP = re.compile(
    rf"""[\[(<]?(?:
        \d{{4}}[-/]\d\d[-/]\d\d[T\ ]\d\d:\d\d          # 2026-01-31 12:00
      | \d\d:\d\d:\d\d\b                               # 12:00:00
      | [A-Z][a-z]{{2}}\ [\ \d]\d\ \d\d:\d\d           # Jan 31 12:00
      | \d\d/[A-Z][a-z]{{2}}/\d{{4}}[:\ ]\d\d          # 31/Jan/2026:12
      | [IWEF]\d{{4}}\ \d\d:\d\d                       # I0131 12:00
      | (?:\d{{1,3}}\.){{3}}\d{{1,3}}\ \S{{1,64}}\ \S{{1,64}}\ \[  # 10.0.0.1 - - [
      | (?:{_LEVELS})\b
    )""",
    re.VERBOSE,
)
_SEPARATORS = {"\t": 1, ",": 2, ";": 2, "|": 2}
"""With how many of them at least a row must have: prose has commas too."""


def log_seams(text: str, start: int) -> Seams | None:
    """Return seams before records, then before other lines; None if the text is no log."""
    sample = [at for at in islice(_line_starts(text, start), SAMPLED_LINES) if text[at : at + 1]]
    stamped = sum(1 for at in sample if _STAMP.match(text, at))
    if stamped < max(LEAST_RECORDS, LEAST_SHARE * len(sample)):
        return None
    seams = Seams(of_records=True)
    for at in islice(_line_starts(text, start), 1, None):
        seams.add(at, _log_rank(text, at))
    return seams


def _log_rank(text: str, at: int) -> int:
    if _STAMP.match(text, at):
        return _RECORD
    return _INDENTED if text[at : at + 1].isspace() else _LINE


def table_seams(text: str, start: int) -> Seams | None:
    """Return seams before rows, then inside cells of several lines; None if it is no table.

    The same separator comes equally often in each of the first rows, quoted cells left out.
    """
    if not _is_table(text, start):
        return None
    seams, quotes, last = Seams(of_records=True), 0, start
    for at in islice(_line_starts(text, start), 1, None):
        quotes += text.count('"', last, at)
        seams.add(at, _LINE if quotes % 2 else _RECORD)
        last = at
    quotes += text.count('"', last)
    # An odd one out leaves unknown which line ends are inside of cells.
    return None if quotes % 2 else seams


def _is_table(text: str, start: int) -> bool:
    rows = _outside_quotes(text[start : start + SAMPLED_CHARS]).split("\n")[:SAMPLED_LINES]
    # The last one may have been cut off.
    whole = [row for row in rows[:-1] if row.strip()]
    if len(whole) < LEAST_RECORDS:
        return False
    return any(
        len(counts := {row.count(separator) for row in whole}) == 1 and min(counts) >= least
        for separator, least in _SEPARATORS.items()
    )


def _outside_quotes(sample: str) -> str:
    return "".join(sample.split('"')[::2])


def _line_starts(text: str, start: int) -> Iterator[int]:
    while start < len(text):
        yield start
        end = text.find("\n", start)
        start = end + 1 if end >= 0 else len(text)
