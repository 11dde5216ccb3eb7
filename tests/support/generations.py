"""A tenant that lives on while its mirror is made anew, and what must hold of it all the time."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.support.memories import find, remembered
from tests.support.scratch import ScratchDatabase
from tests.support.storage import Tenant

from annals_client import user
from annals_local.postgres import LocalPostgres

TOPICS = ("otter", "ferry", "quince", "turbine", "glacier", "violin", "harbour", "saffron")
FACTS = 60
CHANGED = 16
PATIENCE_S = 60.0
MEMORY = "The lighthouse keeper prefers rye bread"


def fact(number: int) -> str:
    return f"The {TOPICS[number % len(TOPICS)]} number code{number} was seen at pier{number}"


async def command(
    postgres: LocalPostgres | ScratchDatabase, data_dir: Path, *arguments: str, **settings: str
) -> tuple[int, str]:
    """Run `annals-storage` in a process of its own; return its exit code and all it said."""
    environ = {
        "PATH": os.environ["PATH"],
        "ANNALS_STORAGE_DATABASE_URL": postgres.app_url,
        "ANNALS_STORAGE_DATA_DIR": str(data_dir),
        "ANNALS_STORAGE_EMBEDDING_THREADS": "1",
        **settings,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "annals_storage", *arguments, env=environ, stdout=PIPE, stderr=PIPE
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode() + err.decode()


@dataclass(slots=True)
class Life:
    """A tenant's facts: some stay, some are edited, deleted or erased while `living`."""

    tenant: Tenant
    kept: dict[str, str] = field(default_factory=dict)
    doomed: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    condemned: str = ""
    searches: int = 0
    searched: asyncio.Event = field(default_factory=asyncio.Event)
    numbers: count[int] = field(default_factory=count)

    async def begin(self) -> None:
        """Store what there is at first."""
        made = await self.tenant.client.conversations.create()
        self.condemned = (await self.tenant.client.conversations.create()).conversation_id
        self.kept |= await self._append(made.conversation_id, FACTS)
        self.doomed |= await self._append(made.conversation_id, CHANGED)
        await self._append(self.condemned, CHANGED)
        await remembered(self.tenant, MEMORY)

    async def _append(self, conversation_id: str, how_many: int) -> dict[str, str]:
        said = [fact(next(self.numbers)) for _ in range(how_many)]
        new = [user(each) for each in said]
        stored = await self.tenant.client.events.append(conversation_id, new)
        return dict(zip((event.event_id for event in stored.events), said, strict=True))

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Search and change things until the block ends; then every call must have gone well."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._search(over))
            tasks.create_task(self._change(over))
            try:
                yield
            finally:
                over.set()

    async def _search(self, over: asyncio.Event) -> None:
        while not over.is_set():
            for event_id, text in list(self.kept.items())[:: FACTS // 15]:
                found = await self.tenant.client.search.events(text, limit=5, timeout=PATIENCE_S)
                assert event_id in {hit.event.event_id for hit in found.hits}, text
                memory = await find(self.tenant, MEMORY, freshness="SEARCH_FRESHNESS_UNSPECIFIED")
                assert [hit.memory.content for hit in memory.hits] == [MEMORY]
                self.searches += 1
                self.searched.set()

    async def _change(self, over: asyncio.Event) -> None:
        client = self.tenant.client
        room = (await client.conversations.create()).conversation_id
        while not over.is_set():
            # A change for each search: the machine is to be busy, not drowned.
            await self.searched.wait()
            self.searched.clear()
            await self._append(room, 1)
            if self.condemned:
                await client.erasure.conversation(self.condemned, timeout=PATIENCE_S)
                self.condemned = ""
            elif len(self.doomed) > CHANGED // 2:
                await self._doom()

    async def _doom(self) -> None:
        (deleted, first), (erased, second) = self.doomed.popitem(), self.doomed.popitem()
        await self.tenant.client.events.delete(deleted)
        await self.tenant.client.erasure.event(erased, timeout=PATIENCE_S)
        self.gone += [first, second]
