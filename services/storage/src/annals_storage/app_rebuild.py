"""`annals-storage rebuild`, and the verification of every generation of the mirror."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from annals_storage.app_adapters import Adapters, admin_database
from annals_storage.app_mirrors import parts_of, wanted_model
from annals_storage.commands.mending import MendMirror
from annals_storage.commands.mirror_report import MirrorReport, Progress
from annals_storage.commands.verifying import VerifyMirror
from annals_storage.domain.generations import EmbeddingModel, GenerationState, MirrorGeneration
from annals_storage.postgres.generations import PostgresGenerations
from annals_storage.settings import StorageSettings

LOOK_SECONDS = 0.5
LINE_PERCENT = 10
Run = Callable[[Callable[[StorageSettings], Awaitable[None]]], None]


def rebuild_command(run: Run) -> click.Command:
    """Return the command; `run` runs what it does with the settings."""

    @click.command(name="rebuild")
    @click.option("--model", help="Another embedding model, by which everything is embedded anew.")
    @click.option(
        "--model-dir",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Its files. Every process that serves or indexes must find them here.",
    )
    @click.option(
        "--wait/--no-wait",
        default=True,
        show_default=True,
        help="Show how far it is until it serves; stopping to look does not stop it.",
    )
    @click.option("--cancel", is_flag=True, help="Give up the one that is being built.")
    def rebuild(model: str | None, model_dir: Path | None, *, wait: bool, cancel: bool) -> None:
        """Make the mirror anew beside the one that serves, which it then replaces.

        Without --model, of the embeddings that PostgreSQL keeps: nothing is embedded. The indexers
        of the processes that serve do the work; they go on answering meanwhile.
        """
        if model_dir and not model:
            raise click.UsageError("--model-dir is of a --model: give its name, too")
        if cancel:
            run(_cancel)
            return

        async def act(settings: StorageSettings) -> None:
            async with admin_database(settings) as database:
                store = PostgresGenerations(database)
                requested = await _request(settings, store, model, model_dir)
                click.echo(f"generation {requested.number} is being built")
                if wait:
                    await _follow(store, requested.number)

        run(act)

    return rebuild


async def _cancel(settings: StorageSettings) -> None:
    async with admin_database(settings) as database:
        cancelled = await PostgresGenerations(database).cancel()
    if cancelled is None:
        sys.exit("nothing is being built")
    click.echo(f"generation {cancelled.number} is given up")


async def _request(
    settings: StorageSettings,
    store: PostgresGenerations,
    name: str | None,
    directory: Path | None,
) -> MirrorGeneration:
    rows = {row.state: row for row in await store.all()}
    serving = rows.get(GenerationState.SERVING)
    if serving is None:
        sys.exit("there is no mirror yet: start storage first")
    requested = await store.request(await _model(settings, serving.model, name, directory))
    if requested is None:
        sys.exit(f"one at a time: {what_is_there(rows.values())}")
    return requested


def what_is_there(rows: Iterable[MirrorGeneration]) -> str:
    """Return why none can be begun, and what to do: only a build can be given up."""
    states = {row.state: f"generation {row.number} is {row.state}" for row in rows}
    said = ", ".join(states.values())
    if GenerationState.BUILDING in states:
        return f"{said}; wait, or run `rebuild --cancel`"
    if len(states) > 1:
        return f"{said}; what was replaced is removed by itself: try again in a minute"
    return f"{said}, and another one was begun just now; see `annals status`"


async def _model(
    settings: StorageSettings, serving: EmbeddingModel, name: str | None, directory: Path | None
) -> EmbeddingModel:
    if name is None or (name == serving.name and directory is None):
        return serving
    if name == serving.name:
        sys.exit(
            f"{name} is the model in use; files that embed differently are another model: "
            "give it another name"
        )
    return await wanted_model(settings, name, directory)


async def _follow(store: PostgresGenerations, number: int) -> None:
    """Show how far it is until it serves. Exits 1 when it is given up."""
    shown = _bar if sys.stdout.isatty() else _lines
    with shown() as show:
        while True:
            row = next((row for row in await store.all() if row.number == number), None)
            if row is None or row.state is GenerationState.REMOVING:
                sys.exit(f"generation {number} was given up")
            show(row)
            if row.state is GenerationState.SERVING:
                break
            await asyncio.sleep(LOOK_SECONDS)
    click.echo(f"generation {number} serves")


class _lines:  # noqa: N801 - reads as a statement
    """A line for each tenth, and for each problem."""

    def __init__(self) -> None:
        self._percent, self._problem = -LINE_PERCENT, ""

    def __enter__(self) -> Callable[[MirrorGeneration], None]:
        return self._show

    def __exit__(self, *_: object) -> None:
        return None

    def _show(self, row: MirrorGeneration) -> None:
        percent = int(row.progress * 100)
        if percent >= self._percent + LINE_PERCENT:
            self._percent = percent
            click.echo(f"{percent} % of {row.sources_total or 0} events and memories")
        if row.problem != self._problem:
            self._problem = row.problem
            click.echo(f"does not serve yet: {row.problem}" if row.problem else "mended")


class _bar:  # noqa: N801 - reads as a statement
    """A bar on a terminal."""

    def __init__(self) -> None:
        self._bar = click.progressbar(
            length=100, label="events and memories", item_show_func=lambda item: item
        )
        self._percent = 0

    def __enter__(self) -> Callable[[MirrorGeneration], None]:
        self._bar.__enter__()
        return self._show

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._bar.__exit__(kind, error, trace)

    def _show(self, row: MirrorGeneration) -> None:
        percent = int(row.progress * 100)
        self._bar.update(percent - self._percent, row.problem or "")
        self._percent = percent


async def verify_generations(
    adapters: Adapters, tenant_id: UUID | None, *, is_repaired: bool, progress: Progress
) -> dict[int, MirrorReport]:
    """Compare each generation that is whole, the one that serves first; return what was found."""
    reports: dict[int, MirrorReport] = {}
    serving = adapters.generations.serving
    for each in (serving, *(other for other in adapters.generations.live if other is not serving)):
        number = each.generation.number
        if each.generation.state is GenerationState.BUILDING:
            progress(f"generation {number} is being built; it is compared before it serves")
            continue
        parts = parts_of(adapters.database, each)
        mend = MendMirror(parts) if is_repaired else None
        reports[number] = await VerifyMirror(parts, mend=mend, progress=progress)(tenant_id)
    return reports


def summary(reports: dict[int, MirrorReport]) -> dict[str, Any]:
    """Return the first report, with its generation, and the others as `others`."""
    described = [{"generation": n, **report.as_dict()} for n, report in reports.items()]
    first, *others = described
    return {**first, "others": others} if others else first
