"""What the model should see next, in N tokens."""

from __future__ import annotations

from annals.context.v1 import context_service_pb2 as pb
from annals.context.v1 import resources_pb2 as res
from annals_client.calls import Call, safe_call
from annals_client.values import enum_number


def prepare(
    conversation_id: str,
    *,
    budget_tokens: int,
    response_reserve_tokens: int = 0,
    query: str = "",
    current_message: str = "",
    model: str = "",
    payload_format: int | str = "openai-chat",
    strategy: int | str = "adaptive",
    recent_events: int | None = None,
    relevant_events: int | None = None,
    snippet_chars: int | None = None,
    include_tool_calls: bool | None = None,
    read_your_writes: bool = False,
    branch: int = 0,
    previous_context_version: str = "",
    timeout: float | None = None,
) -> Call[pb.PrepareContextResponse]:
    """Build a context. `strategy`: adaptive, full, snippet.

    `payload_format`: openai-chat, openai-responses, anthropic-messages, gemini-contents or text.
    `branch` 0: the current one. `previous_context_version`: what to compare it with; the answer's
    `shared_prefix_tokens` says how much of it a provider that caches prompts has read already.

    Raises BudgetTooSmallError with `minimum_budget_tokens` when nothing fits.
    """
    request = pb.PrepareContextRequest(
        conversation_id=conversation_id,
        budget_tokens=budget_tokens,
        response_reserve_tokens=response_reserve_tokens,
        query=query,
        current_message=current_message,
        model=model,
        format=enum_number(res.PayloadFormat, "PAYLOAD_FORMAT_", payload_format),
        strategy=enum_number(res.Strategy, "STRATEGY_", strategy),
        recent_events=recent_events,
        relevant_events=relevant_events,
        snippet_chars=snippet_chars,
        include_tool_calls=include_tool_calls,
        read_your_writes=read_your_writes,
        branch=branch,
        previous_context_version=previous_context_version,
    )
    return safe_call(lambda stubs: stubs.context.PrepareContext, request, timeout)
