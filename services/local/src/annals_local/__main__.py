"""The `annals-local` command."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from annals_client import AnnalsClientError
from annals_local import show
from annals_local.errors import LocalError
from annals_local.paths import LocalPaths
from annals_local.ports import ANY_PORTS, Ports
from annals_local.running import Use, clear, hold
from annals_local.storage_tools import run_storage
from annals_local.supervisor import Serving

_DIRECTORY = click.Path(path_type=Path, file_okay=False)
_PORT = click.IntRange(0, 65_535)


def _port(name: str, usual: int) -> Callable[..., Any]:
    text = f"Port of {name}; 0: any.  [default: {usual} when free, else any]"
    return click.option(f"--{name}-port", type=_PORT, help=text)


def _local_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        _port("context-metrics", 9465),
        _port("storage-metrics", 9464),
        _port("context", 50052),
        _port("storage", 50051),
        _data_dir("build/local", "Holds everything; `annals` finds build/local by itself."),
    ):
        command = option(command)
    return command


def _data_dir(default: str, text: str) -> Callable[..., Any]:
    return click.option(
        "--data-dir", type=_DIRECTORY, default=Path(default), show_default=True, help=text
    )


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Annals on one machine, nothing else needed: no container, no root, no model hub.

    Starts PostgreSQL, storage and context as processes of their own, starts anew whatever
    dies, and writes addresses and a development key to DATA_DIR/endpoints.json, where the
    `annals` command finds them. Logs are in DATA_DIR/logs. SIGTERM and Ctrl-C drain.
    """


@main.command()
@_local_options
def up(data_dir: Path, **ports: int | None) -> None:
    """Serve until stopped."""
    _hold(data_dir, _ports(ports), _serve)


@main.command()
@_local_options
def run(data_dir: Path, **ports: int | None) -> None:
    """Load the sample, show a prepared context, serve until stopped."""
    _hold(data_dir, _ports(ports), _show_and_serve)


@main.command()
@_data_dir("build/demo", "Made anew on each demo; `run` may run beside it.")
def demo(data_dir: Path) -> None:
    """Load the sample into a new installation, ask three questions, stop."""
    with _told():
        clear(LocalPaths(data_dir.resolve()))
    _hold(data_dir, ANY_PORTS, _demonstrate)


@main.command(context_settings={"allow_interspersed_args": False})
@_data_dir("build/local", "The installation; stands before ARGUMENTS.")
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
def storage(data_dir: Path, arguments: tuple[str, ...]) -> None:
    """Run `annals-storage ARGUMENTS` with the settings of the installation.

    While it serves, by its PostgreSQL; not `verify` and `optimize`, which need the vector engine
    for themselves. Else PostgreSQL is started for it and stopped again. The exit code is the
    command's.

    \b
    Examples:
      annals-local storage verify --repair
      annals-local storage parked --retry
      annals-local storage --data-dir build/demo verify
    """
    with _told():
        code = run_storage(LocalPaths(data_dir.resolve()), arguments)
    sys.exit(code)


async def _serve(serving: Serving) -> None:
    show.explain(serving)
    await asyncio.Event().wait()


async def _show_and_serve(serving: Serving) -> None:
    loaded = await show.ingest(serving)
    await show.ask(serving, loaded.conversation_id, show.QUESTIONS[0])
    show.explain(serving, loaded.conversation_id)
    await asyncio.Event().wait()


async def _demonstrate(serving: Serving) -> None:
    loaded = await show.ingest(serving)
    for question in show.QUESTIONS:
        await show.ask(serving, loaded.conversation_id, question)


def _hold(data_dir: Path, ports: Ports, use: Use) -> None:
    with _told():
        hold(LocalPaths(data_dir.resolve()), ports, use)


@contextmanager
def _told() -> Iterator[None]:
    """Turn what the user can do something about into one message."""
    try:
        yield
    except (LocalError, AnnalsClientError) as error:
        raise click.ClickException(str(error)) from error


def _ports(given: dict[str, int | None]) -> Ports:
    return Ports(**{name.removesuffix("_port"): port for name, port in given.items()})


if __name__ == "__main__":
    main()
