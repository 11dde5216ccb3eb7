"""Group commit: appends that arrive together share one transaction.

While a transaction of a tenant is on its way, newcomers wait in line; the next one takes as
many of them as fit. A group sets off when the event loop has no more newcomers, after two
milliseconds at the latest. One transaction at a time makes larger groups,
and more appends a second, than two (measured with `make bench-write`). Bulk appends have a line
of their own, so that they do not hold up interactive ones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from annals_common.errors import AnnalsError
from annals_storage.commands.growth import GrowthAlert
from annals_storage.domain.appending import Append, AppendResult
from annals_storage.ports.events import AppendStore

MAX_GROUP_EVENTS = 200
MAX_JOIN_SECONDS = 0.002
IDLE_TURNS = 4
"""Turns of the event loop without a newcomer after which a group sets off."""
BULK_EVENTS = 200
"""Appends of at least so many events go into the line for bulk."""


class Lane(StrEnum):
    """Which appends wait for each other."""

    INTERACTIVE = "interactive"
    BULK = "bulk"


@dataclass(slots=True, eq=False)
class _Waiting:
    append: Append
    outcome: asyncio.Future[AppendResult | AnnalsError]


class GroupCommit:
    """Stores appends one by one for its callers, in groups for the database."""

    def __init__(self, store: AppendStore, alert: GrowthAlert | None = None) -> None:
        self._store = store
        self._alert = alert
        self._lines: dict[tuple[UUID, Lane], deque[_Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def append(self, append: Append) -> AppendResult:
        """Return once the append is durable. Raises its error."""
        waiting = _Waiting(append, asyncio.get_running_loop().create_future())
        self._enqueue(waiting)
        outcome = await waiting.outcome
        if isinstance(outcome, AnnalsError):
            raise outcome
        if self._alert is not None:
            self._alert.note(outcome)
        return outcome

    async def drain(self) -> None:
        """Return when nothing is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    def _enqueue(self, waiting: _Waiting) -> None:
        append = waiting.append
        lane = Lane.BULK if len(append.events) >= BULK_EVENTS else Lane.INTERACTIVE
        line = self._lines.get((append.tenant_id, lane))
        if line is not None:
            line.append(waiting)
            return
        self._lines[append.tenant_id, lane] = deque([waiting])
        task = asyncio.create_task(self._serve(append.tenant_id, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, tenant_id: UUID, lane: Lane) -> None:
        """Commit group after group until the line is empty."""
        line = self._lines[tenant_id, lane]
        while line:
            await _let_others_join(line)
            if group := _take_group(line):
                await self._commit(group)
        del self._lines[tenant_id, lane]

    async def _commit(self, group: Sequence[_Waiting]) -> None:
        try:
            outcomes = await self._store.store([waiting.append for waiting in group])
        except (AnnalsError, TimeoutError) as error:
            _fail(group, error)
        except Exception as error:  # noqa: BLE001 - each caller gets it, and the line goes on
            await self._commit_apart(group, error)
        else:
            for waiting, outcome in zip(group, outcomes, strict=True):
                if not waiting.outcome.done():
                    waiting.outcome.set_result(outcome)

    async def _commit_apart(self, group: Sequence[_Waiting], error: Exception) -> None:
        """Let the one append that PostgreSQL chokes on fail alone."""
        if len(group) == 1:
            _fail(group, error)
            return
        for waiting in group:
            await self._commit([waiting])


async def _let_others_join(line: deque[_Waiting]) -> None:
    """Let calls that have arrived, but were not looked at yet, into the line."""
    loop = asyncio.get_running_loop()
    deadline, idle_turns = loop.time() + MAX_JOIN_SECONDS, 0
    while idle_turns < IDLE_TURNS and loop.time() < deadline:
        length = len(line)
        await asyncio.sleep(0)
        idle_turns = 0 if len(line) > length else idle_turns + 1


def _take_group(line: deque[_Waiting]) -> list[_Waiting]:
    """Take the appends that can share a transaction off the line; the others keep their order."""
    group = _Group()
    skipped: deque[_Waiting] = deque()
    while line and not group.is_full():
        waiting = line.popleft()
        # A caller that gave up while it waited has stored nothing.
        if not waiting.outcome.done() and not group.take(waiting):
            skipped.append(waiting)
    line.extendleft(reversed(skipped))
    return group.members


class _Group:
    """Appends that cannot influence each other's outcome."""

    def __init__(self) -> None:
        self.members: list[_Waiting] = []
        self._events = 0
        self._keys: set[object] = set()
        self._conversations: set[UUID] = set()
        self._closed: set[UUID] = set()

    def is_full(self) -> bool:
        return self._events >= MAX_GROUP_EVENTS

    def take(self, waiting: _Waiting) -> bool:
        append = waiting.append
        if not self._accepts(append):
            # Later appends to this conversation must not overtake the one left behind.
            self._closed.add(append.conversation_id)
            return False
        self.members.append(waiting)
        self._events += len(append.events)
        self._keys |= append.keys()
        self._conversations.add(append.conversation_id)
        if append.depends_on_order():
            self._closed.add(append.conversation_id)
        return True

    def _accepts(self, append: Append) -> bool:
        alone = append.depends_on_order() and append.conversation_id in self._conversations
        closed = append.conversation_id in self._closed
        return not (alone or closed or self._keys & append.keys())


def _fail(group: Sequence[_Waiting], error: Exception) -> None:
    for waiting in group:
        if not waiting.outcome.done():
            waiting.outcome.set_exception(error)
