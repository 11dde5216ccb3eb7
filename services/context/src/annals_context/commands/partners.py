"""Fetches what was neither listed nor found: what a reader expanded, other halves of tool calls."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from annals_context.commands.fetching import events_at
from annals_context.commands.gathering import Material, shown
from annals_context.commands.prepare_request import Prepare
from annals_context.commands.together import first_error
from annals_context.domain.events import Event, EventType
from annals_context.domain.model import DetailLevel
from annals_context.domain.pairing import unpaired_tool_call_ids
from annals_context.ports import Caller, Storage

PARTNER_REACH = 50
"""How far from a tool call its result is looked for, in events, and the other way round."""
MAX_PARTNER_LOOKUPS = 8


class FetchExpanded:
    """Adds the events to be shown in full that were neither listed nor found."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def __call__(self, caller: Caller, request: Prepare, material: Material) -> Material:
        """Return the material with them; raises what storage raises."""
        asked = {seq for seq, level in request.pins.items() if level is DetailLevel.FULL}
        seqs = asked.difference(event.seq for event in _distinct(material))
        if not seqs:
            return material
        found = await events_at(
            self._storage, caller, request.conversation_id, branch=request.branch, seqs=seqs
        )
        return replace(material, expanded=tuple(shown(found)))


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
        # What a reader asked for must not miss its other half for want of look-ups.
        halves.sort(key=lambda event: event.seq not in request.pins)
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
    found = (hit.event for hit in material.found.answer.hits)
    all_events = (*material.newest.events, *found, *material.expanded)
    events = {event.seq: event for event in all_events}
    return [events[seq] for seq in sorted(events)]
