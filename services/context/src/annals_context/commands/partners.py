"""Fetches what tool calls and results lack to be whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from annals_context.commands.gathering import Material, shown
from annals_context.commands.patience import first_error
from annals_context.commands.prepare_request import Prepare
from annals_context.domain.events import Event, EventType
from annals_context.domain.model import Hit
from annals_context.domain.pairing import unpaired_tool_call_ids
from annals_context.ports import Caller, Storage

PARTNER_REACH = 50
"""How far from a tool call its result is looked for, in events, and the other way round."""
MAX_PARTNER_LOOKUPS = 8


class FetchPartners:
    """Asks storage for the calls and results whose other half is already there."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def __call__(self, caller: Caller, request: Prepare, material: Material) -> list[Event]:
        """Return the missing halves; raises what storage raises."""
        if not material.options.include_tool_calls:
            return []
        present = _distinct(material)
        alone = set(unpaired_tool_call_ids(present))
        halves = [event for event in present if event.tool_call_id in alone]
        async with first_error(), asyncio.TaskGroup() as tasks:
            lookups = [
                tasks.create_task(self._around(caller, request, half))
                for half in halves[:MAX_PARTNER_LOOKUPS]
            ]
        nearby = [event for lookup in lookups for event in lookup.result()]
        return [event for event in shown(nearby) if event.tool_call_id in alone]

    async def _around(self, caller: Caller, request: Prepare, half: Event) -> list[Event]:
        is_call = half.type is EventType.TOOL_CALL
        return await self._storage.list_between(
            caller,
            request.conversation_id,
            branch=request.branch,
            after_seq=half.seq if is_call else max(0, half.seq - PARTNER_REACH),
            before_seq=half.seq + PARTNER_REACH if is_call else half.seq,
            types=[EventType.TOOL_RESULT if is_call else EventType.TOOL_CALL],
        )


def _distinct(material: Material) -> list[Event]:
    hits: Sequence[Hit] = material.found.answer.hits
    events = {event.seq: event for event in (*material.newest.events, *(hit.event for hit in hits))}
    return [events[seq] for seq in sorted(events)]
