"""Processes as a cluster sees them: probed on their own port, stopped by SIGTERM."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.bench.stack import free_port
from tests.support.generations import command
from tests.support.scratch import ScratchDatabase
from tests.support.storage import RunningStorage
from tests.support.waiting import eventually

from annals_common.health import LIVENESS
from annals_common.probe import probe

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
NOBODY = "postgresql://annals_app@127.0.0.1:1/annals"


@contextmanager
def storage_process(
    command: str, database_url: str, data_dir: Path
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run `annals-storage COMMAND`; yield the address of its health, and the process."""
    address = f"127.0.0.1:{free_port()}"
    env = {
        "ANNALS_STORAGE_SERVER__ADDRESS": "127.0.0.1:0",
        "ANNALS_STORAGE_SERVER__HEALTH_ADDRESS": address,
        "ANNALS_STORAGE_DATABASE_URL": database_url,
        "ANNALS_STORAGE_DATA_DIR": str(data_dir),
        "ANNALS_STORAGE_EMBEDDING_THREADS": "1",
    }
    with (data_dir / "log").open("wb") as log:
        run = [sys.executable, "-m", "annals_storage", command]
        process = subprocess.Popen(run, env={**os.environ, **env}, stderr=log)
        try:
            yield address, process
        finally:
            process.kill()
            process.wait()


async def asked(address: str, service: str = "") -> str:
    return (await probe([address], None, service=service))[address]


async def stopped(process: subprocess.Popen[bytes]) -> int:
    process.terminate()
    return await asyncio.to_thread(process.wait, STOP_TIMEOUT_S)


@pytest.fixture
def data_dir(storage: RunningStorage, tmp_path: Path) -> Path:
    (tmp_path / "models").symlink_to(storage.data_dir / "models")
    return tmp_path


@pytest.mark.parametrize("name", ["serve", "index"])
async def test_a_model_that_cannot_be_loaded_ends_it_in_one_line(
    name: str, scratch: ScratchDatabase, data_dir: Path
) -> None:
    damaged = data_dir / "damaged"
    damaged.mkdir()
    (damaged / "config.json").write_text('{"hidden_size": 8}')
    (damaged / "model.onnx").write_bytes(b"no graph")
    wanted = {"serve": {}, "index": {"ANNALS_STORAGE_EMBEDDING_MODEL_DIR": str(damaged)}}

    code, said = await command(
        scratch, data_dir, name, ANNALS_STORAGE_EMBEDDING_MODEL="no/such-model", **wanted[name]
    )

    plain = [line for line in said.splitlines() if not line.startswith("{")]
    assert (code, len(plain)) == (1, 1), said
    assert plain[0].startswith("the model 'no/such-model' cannot be loaded: ")


@pytest.mark.parametrize("name", ["serve", "index"])
async def test_one_that_waits_for_postgresql_is_alive_not_serving_and_stops(
    name: str, data_dir: Path
) -> None:
    with storage_process(name, NOBODY, data_dir) as (address, process):
        await eventually(
            lambda: asked(address, LIVENESS), lambda it: it == "SERVING", timeout_s=START_TIMEOUT_S
        )
        assert await asked(address) == "NOT_SERVING"
        assert await stopped(process) == 0


@pytest.mark.parametrize("name", ["serve", "index"])
async def test_one_that_works_is_serving_and_stops(
    name: str, scratch: ScratchDatabase, data_dir: Path
) -> None:
    with storage_process(name, scratch.app_url, data_dir) as (address, process):
        await eventually(
            lambda: asked(address), lambda it: it == "SERVING", timeout_s=START_TIMEOUT_S
        )
        assert await stopped(process) == 0
