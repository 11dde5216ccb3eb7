"""The `annals` command, run as a process against both real services."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.context import RunningContext
from tests.support.storage import RunningStorage, Tenant

Run = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a finished command left behind."""

    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The last line on stderr, which says what is wrong."""
        return self.stderr.splitlines()[-1]


@pytest.fixture
def run(storage: RunningStorage, context: RunningContext, tenant: Tenant, tmp_path: Path) -> Run:
    """Run the command as the fresh tenant; JSON on stdout comes back decoded."""
    environ = {
        "PATH": os.environ["PATH"],
        "ANNALS_STORAGE_ADDRESS": storage.address,
        "ANNALS_CONTEXT_ADDRESS": context.address,
        "ANNALS_API_KEY": tenant.api_key,
    }

    async def invoke(*arguments: object, exit_code: int = 0, stdin: str = "") -> Any:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "annals_client", "--timeout", "30", *map(str, arguments)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environ,
            cwd=tmp_path,
        )
        stdout, stderr = (output.decode() for output in await process.communicate(stdin.encode()))
        assert process.returncode == exit_code, stdout + stderr
        return json.loads(stdout) if "--json" in arguments else Ran(stdout, stderr)

    return invoke
