"""`python -m tests.bench.quality --data PATH`: how well what was said is found again.

Everything goes through the public calls and the client's importers, so that what is measured is
what users get.
"""

from __future__ import annotations

from pathlib import Path

import click
from tests.bench import locomo, longmemeval
from tests.bench.harness import Report
from tests.bench.stack import running_stack


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True, help="Folder of the data.")
@click.option("--dialogues", default=5, show_default=True, help="LoCoMo conversations; 0: none.")
@click.option("--questions", default=15, show_default=True, help="LongMemEval; 0: none.")
def main(data: Path, dialogues: int, questions: int) -> None:
    """Measure LoCoMo turns, LoCoMo evidence in budget and LongMemEval sessions."""
    report = Report("quality", {"dialogues": dialogues, "questions": questions})
    if not (data / "locomo").is_dir() or not (data / "longmemeval").is_dir():
        report.note(f"skipped: {data} does not hold locomo/ and longmemeval/")
        report.write()
        return
    with running_stack() as stack:
        report.server_versions = stack.server_versions()
        if dialogues:
            locomo.run(stack, data, report, dialogues=dialogues)
        if questions:
            longmemeval.run(stack, data, report, questions=questions)
        report.write()


if __name__ == "__main__":
    main()
