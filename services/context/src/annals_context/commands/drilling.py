"""Steps from one context to the next: more of this, less of that, another focus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from annals_common.errors import FieldInvalidError, LimitExceededError, ResourceNotFoundError
from annals_context.commands.fetching import events_at
from annals_context.commands.preparing import Prepare, Prepared
from annals_context.commands.view_tokens import View, ViewTokens
from annals_context.domain.events import Event
from annals_context.domain.handles import EventHandle, Handle, SummaryHandle
from annals_context.domain.model import DetailLevel
from annals_context.domain.pairing import is_tool_event
from annals_context.domain.pins import (
    DetailChange,
    changes_between,
    kept_pins,
    shown_levels,
    with_level,
)
from annals_context.ports import Caller, Identity, Storage, Summaries

MAX_PINS = 200


@dataclass(frozen=True, slots=True)
class Step:
    """The next context, and how it differs from the one before."""

    request: Prepare
    prepared: Prepared
    view: str
    changes: tuple[DetailChange, ...]
    conversation_changed: bool


class DrillDown:
    """Prepares the context of a view again, with what the reader asked for."""

    def __init__(
        self,
        storage: Storage,
        prepare: Callable[[Caller, Prepare], Awaitable[Prepared]],
        tokens: ViewTokens,
        summaries: Summaries,
    ) -> None:
        self._storage, self._prepare, self._tokens = storage, prepare, tokens
        self._summaries = summaries

    def view_of(self, owner: Identity, request: Prepare, prepared: Prepared) -> str:
        """Return the view of a first context; it stays on the branch that was prepared."""
        return self._issue(owner, replace(request, branch=prepared.branch), prepared, request.query)

    async def expand(
        self, caller: Caller, owner: Identity, token: str, handles: Sequence[Handle]
    ) -> Step:
        """Show events in full; of a summary those it quotes, as far as they fit.

        Raises ResourceNotFoundError, BudgetTooSmallError and what `ViewTokens.read` and
        `PrepareContext` raise.
        """
        view = self._tokens.read(owner, token)
        events = [handle for handle in handles if isinstance(handle, EventHandle)]
        required = frozenset(handle.seq for handle in events)
        quoted = await self._quoted(caller, view.request.conversation_id, handles)
        await self._check(caller, view.request, events)
        seqs = (*(seq for seq in quoted if seq not in required), *(it.seq for it in events))
        request = _pinned(view, seqs, DetailLevel.FULL)
        return await self._step(caller, owner, view, replace(request, required=required))

    async def collapse(
        self, caller: Caller, owner: Identity, token: str, handles: Sequence[EventHandle]
    ) -> Step:
        """Show events as stubs at most. Raises as `expand`."""
        view = self._tokens.read(owner, token)
        await self._check(caller, view.request, handles)
        request = _pinned(view, [handle.seq for handle in handles], DetailLevel.STUB)
        return await self._step(caller, owner, view, request)

    async def focus(self, caller: Caller, owner: Identity, token: str, query: str) -> Step:
        """Look for something else; an empty query is the one of the first context."""
        view = self._tokens.read(owner, token)
        request = replace(view.request, query=query or view.own_query)
        return await self._step(caller, owner, view, request)

    async def _quoted(
        self, caller: Caller, conversation_id: str, handles: Iterable[Handle]
    ) -> list[int]:
        """Return the positions of what the summaries among some handles quote."""
        seqs: list[int] = []
        for handle in handles:
            if isinstance(handle, SummaryHandle):
                seqs += await self._summaries.quoted(caller, conversation_id, handle.summary_id)
        return seqs

    async def _check(
        self, caller: Caller, request: Prepare, handles: Sequence[EventHandle]
    ) -> None:
        """Raises for handles of other conversations, and of events that cannot be shown."""
        for handle in handles:
            if handle.conversation_id not in ("", request.conversation_id):
                raise ResourceNotFoundError("event", str(handle))
        seqs = {handle.seq for handle in handles}
        found = await events_at(
            self._storage, caller, request.conversation_id, branch=request.branch, seqs=seqs
        )
        events = {event.seq: event for event in found if event.belongs_in_context}
        for i, handle in enumerate(handles):
            _check_shown(events.get(handle.seq), handle, request, f"handles[{i}]")

    async def _step(self, caller: Caller, owner: Identity, view: View, request: Prepare) -> Step:
        prepared = await self._prepare(caller, request)
        items = prepared.context.items
        _check_required(request, (item.seq for item in items))
        kept = replace(request, pins=kept_pins(request.pins, items), required=frozenset())
        return Step(
            request=request,
            prepared=prepared,
            view=self._issue(owner, kept, prepared, view.own_query),
            changes=changes_between(view.shown, shown_levels(items)),
            conversation_changed=prepared.conversation_version != view.conversation_version,
        )

    def _issue(self, owner: Identity, request: Prepare, prepared: Prepared, own_query: str) -> str:
        shown = shown_levels(prepared.context.items)
        view = View(request, own_query, prepared.conversation_version, shown)
        return self._tokens.issue(owner, view)


def _pinned(view: View, seqs: Iterable[int], level: DetailLevel) -> Prepare:
    pins = with_level(view.request.pins, seqs, level)
    if len(pins) > MAX_PINS:
        raise LimitExceededError(
            "handles", limit=MAX_PINS, actual=len(pins), unit="events in the view"
        )
    return replace(view.request, pins=pins)


def _check_required(request: Prepare, shown_seqs: Iterable[int]) -> None:
    """Raises for what was there a moment ago and was deleted meanwhile."""
    for seq in sorted(request.required.difference(shown_seqs)):
        raise ResourceNotFoundError("event", str(EventHandle(seq)))


def _check_shown(event: Event | None, handle: EventHandle, request: Prepare, field: str) -> None:
    """Raises for an event that cannot be shown."""
    if event is None:
        raise ResourceNotFoundError("event", str(handle))
    if is_tool_event(event) and request.choices.include_tool_calls is False:
        raise FieldInvalidError(
            field, "is a tool call or its result, which the context leaves out", handle
        )
