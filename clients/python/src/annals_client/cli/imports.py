"""`annals import`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from annals_client.cli.failures import in_words
from annals_client.cli.output import print_fields, print_json, stderr_console
from annals_client.cli.state import State, json_option, pass_state
from annals_client.errors import AnnalsClientError
from annals_client.importers import FORMATS, Importer, ImportOptions, ImportSummary
from annals_client.importers.documents import ImportFileError, JsonExportError
from annals_client.importers.load import Report

EXPORT = "annals"
_GZIP_MARK = b"\x1f\x8b"
_EXPORT_MARK = b'"annals.conversation"'
_FIRST_LINE_BYTES = 4_096
_PART_BYTES = 256 * 1024


@click.command("import")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False, readable=True),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", EXPORT, *FORMATS]),
    default="auto",
    show_default=True,
    help="An export of ours, OpenAI messages, or dialogues of two speakers in dated sessions.",
)
@click.option("--agent", "agent_id", default="", help="Agent of the new conversations.")
@click.option("--title", default="", help="Title of the new conversations.")
@click.option("--batch-size", type=click.IntRange(1, 1000), default=500, show_default=True)
@click.option("--new", "as_new", is_flag=True, help="Store a new copy of what is there already.")
@json_option
@pass_state
def import_command(
    state: State,
    *,
    files: Sequence[Path],
    form: str,
    agent_id: str,
    title: str,
    batch_size: int,
    as_new: bool,
) -> None:
    """Import conversations from JSON or JSON Lines FILES.

    A file is what `annals export` wrote as JSON Lines, which comes back as it was with its
    branches, history and memories; or it holds an array of OpenAI messages, {"messages": […]},
    or many of either, or dialogues. What was imported before is found by its content, counted
    as skipped and not stored twice, so an interrupted import is simply run again.
    """
    forced = next((known for known in FORMATS if known == form), None)
    options = ImportOptions(forced, agent_id, title, as_new, batch_size)
    importer = Importer(state.client(), options)
    for path in files:
        with _named(path, files):
            if form == EXPORT or (form == "auto" and _is_export(path)):
                _restore(state, path, importer.summary)
                continue
            with _progress(path) as report:
                importer.load(path, report)
    _print(state, importer.summary)


@contextmanager
def _named(path: Path, files: Sequence[Path]) -> Iterator[None]:
    """Say which of several files a failure is of, where it does not say so itself."""
    try:
        yield
    except ImportFileError:
        raise
    except (AnnalsClientError, ValueError) as error:
        if len(files) == 1:
            raise
        raise click.ClickException(f"{path}: {in_words(error)}") from error


def _is_export(path: Path) -> bool:
    """Tell an export, packed or not; nothing else may be packed."""
    with path.open("rb") as file:
        start = file.readline(_FIRST_LINE_BYTES)
    return _EXPORT_MARK in start or start.startswith(_GZIP_MARK)


def _is_indented(path: Path) -> bool:
    """Tell whether a file is one JSON document over many lines, as no JSON Lines are."""
    with path.open("rb") as file:
        return file.readline(_FIRST_LINE_BYTES).strip() == b"{"


def _restore(state: State, path: Path, summary: ImportSummary) -> None:
    if _is_indented(path):
        raise JsonExportError(path)
    started_s = time.monotonic()
    client = state.client()
    with _progress(path) as report:
        answer = client.conversations.import_file(_parts(path, report))
    summary.conversation_ids += answer.conversation_ids
    summary.stored_conversations += answer.conversation_count
    summary.events += answer.event_count
    summary.memories += answer.memory_count
    summary.skipped_conversations += answer.skipped_conversation_count
    summary.seconds += time.monotonic() - started_s


def _parts(path: Path, report: Report) -> Iterator[bytes]:
    sent_bytes = 0
    with path.open("rb") as file:
        while part := file.read(_PART_BYTES):
            yield part
            sent_bytes += len(part)
            report(sent_bytes, 0)


@contextmanager
def _progress(path: Path) -> Iterator[Report]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[events]} events, {task.fields[rate]:.0f}/s"),
        TimeElapsedColumn(),
    )
    console = stderr_console()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        size_bytes = max(1, path.stat().st_size)
        task_id = progress.add_task(path.name, total=size_bytes, events=0, rate=0.0)
        task = progress.tasks[0]

        def report(read_chars: int, events: int) -> None:
            rate = events / task.elapsed if task.elapsed else 0.0
            progress.update(task_id, completed=read_chars, events=events, rate=rate)

        yield report
        progress.update(task_id, completed=size_bytes)


def _print(state: State, summary: ImportSummary) -> None:
    fields = {
        "conversations": summary.stored_conversations,
        "skipped_conversations": summary.skipped_conversations,
        "events": summary.events,
        "replayed": summary.replayed_events,
        "repairs": summary.repairs,
        "memories": summary.memories,
        "seconds": round(summary.seconds, 3),
        "events_per_second": round(summary.events / summary.seconds) if summary.seconds else 0,
    }
    if state.as_json:
        print_json({**fields, "conversation_ids": summary.conversation_ids})
        return
    print_fields(fields)
    shown = summary.conversation_ids[:10]
    for conversation_id in shown:
        click.echo(conversation_id)
    if len(summary.conversation_ids) > len(shown):
        click.echo(f"… and {len(summary.conversation_ids) - len(shown)} more", err=True)
