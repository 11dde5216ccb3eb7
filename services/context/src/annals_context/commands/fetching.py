"""Reads events by their positions."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence

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
    free = asyncio.Semaphore(MAX_CONCURRENT_READS)
    wanted = frozenset(seqs)

    async def read(run: Sequence[int]) -> list[Event]:
        async with free:
            return await storage.list_between(
                caller,
                conversation_id,
                branch=branch,
                after_seq=run[0] - 1,
                before_seq=run[-1] + 1,
                types=(),
            )

    async def read_all(runs: Iterable[Sequence[int]]) -> dict[int, Event]:
        async with first_error(), asyncio.TaskGroup() as tasks:
            reads = [tasks.create_task(read(run)) for run in runs]
        pages = (task.result() for task in reads)
        return {event.seq: event for page in pages for event in page if event.seq in wanted}

    found = await read_all(runs_of(wanted))
    # A page ends early when its events are large: what it left out is asked for by itself.
    missing = sorted(wanted - found.keys())
    if missing and len(wanted) > 1:
        found |= await read_all([seq] for seq in missing)
    return [found[seq] for seq in sorted(found)]


def runs_of(seqs: Iterable[int]) -> list[list[int]]:
    """Return positions in order, those close to each other together."""
    runs: list[list[int]] = []
    for seq in sorted(seqs):
        if runs and seq - runs[-1][-1] <= MAX_GAP and seq - runs[-1][0] < MAX_RUN:
            runs[-1].append(seq)
        else:
            runs.append([seq])
    return runs
