"""`annals-context`: serve, work in the background, and probe servers."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
import uvloop
from pydantic import ValidationError

from annals_common.logs import configure_logging
from annals_common.probe import probe
from annals_common.server import until_signal
from annals_common.settings import describe_settings, load_settings
from annals_common.tls import ClientTlsSettings
from annals_context.app import ContextApp
from annals_context.settings import ContextSettings

PEM = click.Path(exists=True, dir_okay=False, path_type=Path)


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


@main.command()
def work() -> None:
    """Work off background jobs until SIGTERM, without serving; then give back what is not done."""
    # With scikit-learn behind it, which takes seconds to load: `serve` needs none of it.
    from annals_context.app_workers import (  # noqa: PLC0415
        WorkerKeyMissingError,
        run_worker,
    )

    settings = load_settings(ContextSettings)
    configure_logging("context-worker", settings.server.log_level)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(until_signal(run_worker(settings)))
    except WorkerKeyMissingError as error:
        sys.exit(str(error))


@main.command(name="probe")
@click.argument("addresses", nargs=-1, required=True)
@click.option("--service", default="", help="One service by its full name; default: the whole.")
@click.option("--wait-seconds", default=0.0, help="Ask again for so long.")
@click.option("--tls-ca", type=PEM, envvar="ANNALS_TLS_CA", help="PEM file: call by TLS.")
@click.option("--tls-cert", type=PEM, envvar="ANNALS_TLS_CERT", help="PEM file, for mTLS.")
@click.option("--tls-key", type=PEM, envvar="ANNALS_TLS_KEY", help="PEM file, for mTLS.")
def probe_command(
    addresses: tuple[str, ...],
    *,
    service: str,
    wait_seconds: float,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Ask servers at host:port for their health; exit 1 unless all are SERVING."""
    try:
        tls = ClientTlsSettings(ca_file=tls_ca, cert_file=tls_cert, key_file=tls_key)
    except ValidationError as error:
        raise click.UsageError(error.errors()[0]["msg"]) from None
    credentials = tls.channel_credentials()
    answers = asyncio.run(probe(addresses, credentials, service=service, wait_seconds=wait_seconds))
    for address, answer in answers.items():
        click.echo(f"{address}\t{answer}")
    if set(answers.values()) != {"SERVING"}:
        sys.exit(1)


@main.command(name="settings")
def settings_command() -> None:
    """List every setting: variable, default, meaning."""
    for variable, default, meaning in describe_settings(ContextSettings):
        click.echo(f"{variable}={default}\t{meaning}".rstrip())


async def _serve(settings: ContextSettings) -> None:
    app = ContextApp(settings)
    try:
        await until_signal(_started(app))
    finally:
        await app.stop()


async def _started(app: ContextApp) -> None:
    await app.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    main()
