"""Group commit: appends that arrive together share one transaction.

While a transaction of a tenant is on its way, newcomers wait in line; the next one takes as
many of them as fit. Nobody waits for a timer. Measured by `make bench-write`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from annals_common.errors import AnnalsError
from annals_storage.domain.appending import Append, AppendResult
from annals_storage.ports import AppendStore

MAX_GROUP_EVENTS = 200
MAX_CONCURRENT_GROUPS = 2
"""Transactions of one tenant under way at a time."""


@dataclass(slots=True, eq=False)
class _Waiting:
    append: Append
    outcome: asyncio.Future[AppendResult | AnnalsError]


class GroupCommit:
    """Stores appends one by one for its callers, in groups for the database."""

    def __init__(self, store: AppendStore) -> None:
        self._store = store
        self._lines: dict[UUID, deque[_Waiting]] = defaultdict(deque)
        self._running: dict[UUID, int] = defaultdict(int)
        self._busy: dict[UUID, set[UUID]] = defaultdict(set)
        self._tasks: set[asyncio.Task[None]] = set()

    async def append(self, append: Append) -> AppendResult:
        """Return once the append is durable. Raises its error."""
        waiting = _Waiting(append, asyncio.get_running_loop().create_future())
        self._lines[append.tenant_id].append(waiting)
        self._dispatch(append.tenant_id)
        outcome = await waiting.outcome
        if isinstance(outcome, AnnalsError):
            raise outcome
        return outcome

    async def drain(self) -> None:
        """Return when nothing is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    def _dispatch(self, tenant_id: UUID) -> None:
        while self._running[tenant_id] < MAX_CONCURRENT_GROUPS:
            if not (group := self._take(tenant_id)):
                return
            self._start(tenant_id, group)

    def _take(self, tenant_id: UUID) -> list[_Waiting]:
        line, busy = self._lines[tenant_id], self._busy[tenant_id]
        group = _Group(busy)
        skipped: deque[_Waiting] = deque()
        while line and not group.is_full():
            waiting = line.popleft()
            if waiting.outcome.cancelled():
                continue
            if not group.take(waiting):
                skipped.append(waiting)
        line.extendleft(reversed(skipped))
        return group.members

    def _start(self, tenant_id: UUID, group: list[_Waiting]) -> None:
        conversations = {waiting.append.conversation_id for waiting in group}
        self._running[tenant_id] += 1
        self._busy[tenant_id] |= conversations
        task = asyncio.create_task(self._commit(tenant_id, group, conversations))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _commit(
        self, tenant_id: UUID, group: list[_Waiting], conversations: set[UUID]
    ) -> None:
        try:
            outcomes = await self._store.store([waiting.append for waiting in group])
        except BaseException as error:
            _fail(group, error)
            if not isinstance(error, Exception):
                raise
        else:
            for waiting, outcome in zip(group, outcomes, strict=True):
                _settle(waiting, outcome)
        finally:
            self._finish(tenant_id, conversations)

    def _finish(self, tenant_id: UUID, conversations: set[UUID]) -> None:
        self._running[tenant_id] -= 1
        self._busy[tenant_id] -= conversations
        if self._lines[tenant_id]:
            self._dispatch(tenant_id)
        elif not self._running[tenant_id]:
            for table in (self._lines, self._running, self._busy):
                table.pop(tenant_id)


class _Group:
    """Appends that cannot influence each other's outcome."""

    def __init__(self, busy: set[UUID]) -> None:
        self.members: list[_Waiting] = []
        self._busy = busy
        self._events = 0
        self._keys: set[object] = set()
        self._ordered: set[UUID] = set()
        self._conversations: set[UUID] = set()

    def is_full(self) -> bool:
        return self._events >= MAX_GROUP_EVENTS

    def take(self, waiting: _Waiting) -> bool:
        append = waiting.append
        if not self._accepts(append):
            # Later appends to this conversation must not overtake the one left behind.
            self._ordered.add(append.conversation_id)
            return False
        self.members.append(waiting)
        self._events += len(append.events)
        self._keys |= append.keys()
        self._conversations.add(append.conversation_id)
        if append.depends_on_order():
            self._ordered.add(append.conversation_id)
        return True

    def _accepts(self, append: Append) -> bool:
        conversation = append.conversation_id
        return not (
            conversation in self._busy
            or conversation in self._ordered
            or (append.depends_on_order() and conversation in self._conversations)
            or self._keys & append.keys()
        )


def _settle(waiting: _Waiting, outcome: AppendResult | AnnalsError) -> None:
    if not waiting.outcome.done():
        waiting.outcome.set_result(outcome)


def _fail(group: Sequence[_Waiting], error: BaseException) -> None:
    for waiting in group:
        if not waiting.outcome.done():
            waiting.outcome.set_exception(error)
