"""`annals-context`: serve."""

from __future__ import annotations

import asyncio

import click
import uvloop

from annals_common.logs import configure_logging
from annals_common.server import wait_for_signal
from annals_common.settings import describe_settings, load_settings
from annals_context.app import ContextApp
from annals_context.settings import ContextSettings


@click.group()
def main() -> None:
    """Annals' context engine. Settings come from the environment: ANNALS_CONTEXT_…"""


@main.command()
def serve() -> None:
    """Serve gRPC until SIGTERM, then drain."""
    settings = load_settings(ContextSettings)
    configure_logging("context", settings.server.log_level)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings))


@main.command(name="settings")
def settings_command() -> None:
    """List every setting: variable, default, meaning."""
    for variable, default, meaning in describe_settings(ContextSettings):
        click.echo(f"{variable}={default}\t{meaning}".rstrip())


async def _serve(settings: ContextSettings) -> None:
    app = ContextApp(settings)
    try:
        await app.start()
        await wait_for_signal()
    finally:
        await app.stop()


if __name__ == "__main__":
    main()
