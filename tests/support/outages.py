"""The embedded engine of a service of its own, which a test may shut, open again and hold up."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.storage import RunningStorage, running_storage

from annals_storage import app_mirrors
from annals_storage.settings import StorageSettings
from annals_storage.vectors.edge import EdgeVectorIndex


class Interruptible:
    """A `VectorIndex` over a real shard. What is shut answers as a shut shard does."""

    def __init__(self, path: Path, *, dimensions: int) -> None:
        self._path, self._dimensions = path, dimensions
        self._engine = self._new()
        self._may_pass = asyncio.Event()
        self._may_pass.set()
        self.held_calls = 0
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            await self._pass()
            return await getattr(self._engine, name)(*args, **kwargs)

        return call

    @asynccontextmanager
    async def down(self) -> AsyncIterator[None]:
        """Shut the shard inside the block."""
        await self._engine.close()
        try:
            yield
        finally:
            self._engine = self._new()
            await self._engine.open()

    @asynccontextmanager
    async def stuck(self) -> AsyncIterator[None]:
        """Have calls wait inside the block."""
        self._may_pass.clear()
        try:
            yield
        finally:
            self._may_pass.set()

    def _new(self) -> EdgeVectorIndex:
        return EdgeVectorIndex(self._path, dimensions=self._dimensions)

    async def _pass(self) -> None:
        self.held_calls += 1
        try:
            await self._may_pass.wait()
        finally:
            self.held_calls -= 1


@asynccontextmanager
async def interruptible_storage(
    settings: StorageSettings,
) -> AsyncIterator[tuple[RunningStorage, Interruptible]]:
    """A service whose engine can be interrupted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app_mirrors, "EdgeVectorIndex", Interruptible)
        async with running_storage(settings) as storage:
            engine = storage.adapters.generations.serving.vectors
            assert isinstance(engine, Interruptible)
            yield storage, engine
