"""ContextService: steps from one context to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from annals.context.v1 import context_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.validation import check_count, check_response_size, require_text, text
from annals_context.commands.drilling import DrillDown, Step
from annals_context.commands.preparing import MAX_QUERY_CHARS
from annals_context.commands.view_tokens import MAX_VIEW_CHARS
from annals_context.domain.handles import EventHandle, Handle, parse_handle
from annals_context.handlers.access import current_caller, current_identity
from annals_context.handlers.output import change_message, prepared_response

MAX_HANDLES = 100


class ViewsHandler:
    """Translates; the use cases are in commands.drilling."""

    def __init__(self, drill: DrillDown) -> None:
        self._drill = drill

    async def ExpandDetail(
        self, request: pb.ExpandDetailRequest, context: Any
    ) -> pb.ExpandDetailResponse:
        view, handles = _view(request.view), _handles(request.handles)
        caller, owner = current_caller(context), current_identity()
        step = await self._drill.expand(caller, owner, view, handles)
        return pb.ExpandDetailResponse(**_members(step))

    async def CollapseDetail(
        self, request: pb.CollapseDetailRequest, context: Any
    ) -> pb.CollapseDetailResponse:
        view, handles = _view(request.view), _of_events(request.handles)
        caller, owner = current_caller(context), current_identity()
        step = await self._drill.collapse(caller, owner, view, handles)
        return pb.CollapseDetailResponse(**_members(step))

    async def FocusOn(self, request: pb.FocusOnRequest, context: Any) -> pb.FocusOnResponse:
        view = _view(request.view)
        query = text(request.query, "query", max_chars=MAX_QUERY_CHARS)
        step = await self._drill.focus(current_caller(context), current_identity(), view, query)
        return pb.FocusOnResponse(**_members(step))


def _view(value: str) -> str:
    return require_text(value, "view", max_chars=MAX_VIEW_CHARS)


def _of_events(values: Sequence[str]) -> list[EventHandle]:
    handles = _handles(values)
    for i, handle in enumerate(handles):
        if not isinstance(handle, EventHandle):
            raise FieldInvalidError(
                f"handles[{i}]", 'must be the handle of an event, such as "#41"', handle
            )
    return [handle for handle in handles if isinstance(handle, EventHandle)]


def _handles(values: Sequence[str]) -> list[Handle]:
    if not values:
        raise FieldInvalidError("handles", f"is required: 1–{MAX_HANDLES} handles")
    check_count(values, "handles", max_items=MAX_HANDLES)
    return [_handle(value, f"handles[{i}]") for i, value in enumerate(values)]


def _handle(value: str, field: str) -> Handle:
    handle = parse_handle(value)
    if handle is None:
        raise FieldInvalidError(
            field, 'must be the handle of an event, such as "#41", or the id of a summary', value
        )
    return handle


def _members(step: Step) -> dict[str, Any]:
    response = prepared_response(step.prepared, step.request)
    response.view = step.view
    check_response_size(response, "view")
    return {
        "context": response,
        "changes": [change_message(change) for change in step.changes],
        "conversation_changed": step.conversation_changed,
    }
