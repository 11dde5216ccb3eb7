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
from tests.bench.stores import Stores


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True, help="Folder of the data.")
@click.option("--dialogues", default=5, show_default=True, help="LoCoMo conversations; 0: none.")
@click.option("--questions", default=15, show_default=True, help="LongMemEval; 0: none.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    help="Folder where what was indexed stays; the next run with it only asks.",
)
def main(data: Path, dialogues: int, questions: int, keep: Path | None) -> None:
    """Measure LoCoMo turns, LoCoMo evidence in budget and LongMemEval sessions."""
    report = Report("quality", {"dialogues": dialogues, "questions": questions})
    if not (data / "locomo").is_dir() or not (data / "longmemeval").is_dir():
        report.note(f"skipped: {data} does not hold locomo/ and longmemeval/")
        report.write()
        return
    with running_stack(keep.resolve() if keep else None) as stack:
        stores = Stores(stack, stack.log_dir / "stores.json" if keep else None)
        report.server_versions = stack.server_versions()
        if dialogues:
            locomo.run(stores, data, report, dialogues=dialogues)
        if questions:
            longmemeval.run(stores, data, report, questions=questions)
        report.write()


if __name__ == "__main__":
    main()
