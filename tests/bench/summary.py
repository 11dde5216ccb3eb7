"""`python -m tests.bench.summary`: every figure of build/bench/*.json, and what falls short."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.bench.harness import RESULTS_DIR

NAMES_WIDTH = 120
Row = tuple[str, dict[str, Any]]


def main() -> None:
    """Print the table; say so when there is nothing to print."""
    console = Console(width=None if sys.stdout.isatty() else NAMES_WIDTH)
    written = [json.loads(path.read_text("utf-8")) for path in sorted(RESULTS_DIR.glob("*.json"))]
    # Plans of queries lie there too.
    reports = [report for report in written if "figures" in report]
    if not reports:
        console.print(f"no figures in {RESULTS_DIR}: run `make bench` first")
        return
    rows = [(report["bench"], figure) for report in reports for figure in report["figures"]]
    console.print(_table(rows))
    for note in _notes(reports):
        console.print(note, highlight=False)
    console.print(_verdict(rows), highlight=False)


def _table(rows: list[Row]) -> Table:
    table = Table("bench", "figure", "value", "unit", "target", "")
    for bench, figure in rows:
        verdict = {None: "", True: "holds", False: "FALLS SHORT"}[figure["holds"]]
        style = "bold red" if figure["holds"] is False else None
        value = f"{figure['value']:,.4g}"
        target = figure["target"] or ""
        table.add_row(bench, figure["name"], value, figure["unit"], target, verdict, style=style)
    return table


def _notes(reports: list[dict[str, Any]]) -> Iterator[str]:
    for report in reports:
        yield from (f"{report['bench']}: {note}" for note in report["notes"])


def _verdict(rows: list[Row]) -> str:
    judged = [figure for _, figure in rows if figure["holds"] is not None]
    short = [figure["name"] for figure in judged if not figure["holds"]]
    reached = f"{len(judged) - len(short)} of {len(judged)} targets are reached"
    return f"{reached}; falling short: {', '.join(short)}" if short else reached


if __name__ == "__main__":
    main()
