"""Reads events by their positions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from annals_context.commands.together import first_error
from annals_context.domain.events import Event
from annals_context.ports import Caller, Storage

MAX_GAP = 8
"""Positions that are read although nobody asked for them, to save a call."""
MAX_RUN = 50
MAX_CONCURRENT_READS = 8


async def events_at(
    storage: Storage, caller: Caller, conversation_id: str, *, branch: int, seqs: Collection[int]
) -> list[Event]:
    """Return those of the events that are in view on a branch (0: the current one), by position.

    Raises what storage raises; what is deleted, erased or of another branch is left out.
    """
    wanted = frozenset(seqs)

    async def read(run: Sequence[int]) -> list[Event]:
        after, before = run[0] - 1, run[-1] + 1
        found = await storage.list_between(
            caller, conversation_id, branch=branch, after_seq=after, before_seq=before, types=()
        )
        return [event for event in found if event.seq in wanted]

    found = await _read_all(read, runs_of(wanted))
    # A page ends early when its events are large: what it left out is asked for by itself.
    missing = sorted(wanted - found.keys())
    if missing and len(wanted) > 1:
        found |= await _read_all(read, ([seq] for seq in missing))
    return [found[seq] for seq in sorted(found)]


async def _read_all(
    read: Callable[[Sequence[int]], Awaitable[list[Event]]], runs: Iterable[Sequence[int]]
) -> dict[int, Event]:
    free = asyncio.Semaphore(MAX_CONCURRENT_READS)

    async def read_one(run: Sequence[int]) -> list[Event]:
        async with free:
            return await read(run)

    async with first_error(), asyncio.TaskGroup() as tasks:
        reads = [tasks.create_task(read_one(run)) for run in runs]
    return {event.seq: event for task in reads for event in task.result()}


def runs_of(seqs: Iterable[int]) -> list[list[int]]:
    """Return positions in order, those close to each other together."""
    runs: list[list[int]] = []
    for seq in sorted(seqs):
        if runs and seq - runs[-1][-1] <= MAX_GAP and seq - runs[-1][0] < MAX_RUN:
            runs[-1].append(seq)
        else:
            runs.append([seq])
    return runs
