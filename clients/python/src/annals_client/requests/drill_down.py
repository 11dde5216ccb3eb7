"""Steps from one prepared context to the next. `view` is that of the newest answer."""

from __future__ import annotations

from collections.abc import Sequence

from annals.context.v1 import context_service_pb2 as pb
from annals_client.calls import Call, safe_call


def expand(
    view: str, handles: Sequence[str], *, timeout: float | None = None
) -> Call[pb.ExpandDetailResponse]:
    """Show events in full, such as "#41"; others make room.

    Raises NotFoundError for what names no event in view, and BudgetTooSmallError with
    `minimum_budget_tokens` when one does not fit.
    """
    request = pb.ExpandDetailRequest(view=view, handles=handles)
    return safe_call(lambda stubs: stubs.context.ExpandDetail, request, timeout)


def collapse(
    view: str, handles: Sequence[str], *, timeout: float | None = None
) -> Call[pb.CollapseDetailResponse]:
    """Show events as stubs at most. Raises NotFoundError for what names no event in view."""
    request = pb.CollapseDetailRequest(view=view, handles=handles)
    return safe_call(lambda stubs: stubs.context.CollapseDetail, request, timeout)


def focus_on(
    view: str, query: str = "", *, timeout: float | None = None
) -> Call[pb.FocusOnResponse]:
    """Look for something else; "" is the query of the first context."""
    request = pb.FocusOnRequest(view=view, query=query)
    return safe_call(lambda stubs: stubs.context.FocusOn, request, timeout)
