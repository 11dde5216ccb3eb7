"""Scripted servers, and both clients behind one way to call them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.client.scripted import ScriptedServer

from annals_client import AnnalsClient, AsyncAnnalsClient, RetryPolicy
from annals_client.cli.app import annals

KEY = "ak_do_not_show_5d41402abc4b"
QUICK = RetryPolicy(initial_backoff_s=0.01, max_backoff_s=0.02)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    scripted = ScriptedServer()
    yield scripted
    scripted.stop()


@pytest.fixture
def client(server) -> Iterator[AnnalsClient]:
    with AnnalsClient(
        server.address, server.address, api_key=KEY, admin_key="adm", retries=QUICK
    ) as opened:
        yield opened


@pytest.fixture
async def aio_client(server) -> AsyncIterator[AsyncAnnalsClient]:
    async with AsyncAnnalsClient(
        server.address, server.address, api_key=KEY, admin_key="adm", retries=QUICK
    ) as opened:
        yield opened


@pytest.fixture
def run(server, monkeypatch, tmp_path) -> Callable[..., Result]:
    """Run a command against the scripted server, as in a pipe."""
    monkeypatch.chdir(tmp_path)
    for name in ("ANNALS_ENDPOINTS", "ANNALS_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANNALS_STORAGE_ADDRESS", server.address)
    monkeypatch.setenv("ANNALS_CONTEXT_ADDRESS", server.address)
    monkeypatch.setenv("ANNALS_API_KEY", KEY)

    def invoke(*arguments: str, text: str | None = None) -> Result:
        return CliRunner().invoke(annals, arguments, input=text, prog_name="annals")

    return invoke


Use = Callable[[Any], Any]


@pytest.fixture(params=["threads", "asyncio"])
def call(request) -> Callable[[Use], Any]:
    """Run a use of the client on either client and wait for all of its result."""
    if request.param == "threads":
        client = request.getfixturevalue("client")
        return lambda use: asyncio.to_thread(lambda: _whole(use(client)))
    aio_client = request.getfixturevalue("aio_client")
    return lambda use: _whole_async(use(aio_client))


def _whole(result: Any) -> Any:
    return list(result) if isinstance(result, Iterator) else result


async def _whole_async(result: Any) -> Any:
    if isinstance(result, AsyncIterator):
        return [item async for item in result]
    return await result if inspect.isawaitable(result) else result
