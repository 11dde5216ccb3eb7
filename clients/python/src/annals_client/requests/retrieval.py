"""What bears on a query, in one conversation or across many, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from annals.context.v1 import context_service_pb2 as pb
from annals.context.v1 import resources_pb2 as res
from annals_client.calls import Call, safe_call
from annals_client.values import enum_number, timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where to look. All conditions must hold; without any it is the whole tenant."""

    conversation_ids: Sequence[str] = ()
    agent_id: str = ""
    user_id: str = ""
    session_id: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None

    @property
    def message(self) -> res.RetrievalScope:
        """As the API takes it."""
        return res.RetrievalScope(
            conversation_ids=self.conversation_ids,
            agent_id=self.agent_id,
            user_id=self.user_id,
            session_id=self.session_id,
            start_time=timestamp(self.start_time),
            end_time=timestamp(self.end_time),
        )


def snippets(
    query: str,
    *,
    max_tokens: int = 0,
    strategy: int | str = "mixed",
    expand_context: bool | None = None,
    scope: Scope | None = None,
    model: str = "",
    timeout: float | None = None,
) -> Call[pb.GetRelevantSnippetsResponse]:
    """Find the parts of events that bear on a query. `strategy`: relevance, recency, mixed.

    `max_tokens` 0: 1,000. `expand_context` None: with the events before
    and after. Raises BudgetTooSmallError when nothing fits.
    """
    request = pb.GetRelevantSnippetsRequest(
        query=query,
        max_tokens=max_tokens,
        strategy=enum_number(res.SnippetStrategy, "SNIPPET_STRATEGY_", strategy),
        expand_context=expand_context,
        scope=scope.message if scope else None,
        model=model,
    )
    return safe_call(lambda stubs: stubs.context.GetRelevantSnippets, request, timeout)


def retrieve(
    query: str,
    *,
    auto_limit: int = 0,
    max_tokens: int = 0,
    scope: Scope | None = None,
    model: str = "",
    timeout: float | None = None,
) -> Call[pb.SearchAndRetrieveResponse]:
    """Find whole events, as many as belong together by their scores and fit.

    `auto_limit` 0: 20 at most; `max_tokens` 0: 4,000. Raises
    BudgetTooSmallError when none fits.
    """
    request = pb.SearchAndRetrieveRequest(
        query=query,
        auto_limit=auto_limit,
        max_tokens=max_tokens,
        scope=scope.message if scope else None,
        model=model,
    )
    return safe_call(lambda stubs: stubs.context.SearchAndRetrieve, request, timeout)


def across(
    query: str,
    *,
    conversation_id: str = "",
    scope: int | str = "user",
    max_tokens: int = 0,
    snippets_per_conversation: int = 0,
    limit: int = 0,
    model: str = "",
    timeout: float | None = None,
) -> Call[pb.GetContextFromAllConversationsResponse]:
    """Find what other conversations say. `scope`: those of the same user, agent or tenant.

    `conversation_id` is the one in hand, which is left out; only tenant does without it.
    `max_tokens` 0: 2,000; `snippets_per_conversation` 0: 5; `limit` of conversations, 0: 10.
    """
    request = pb.GetContextFromAllConversationsRequest(
        conversation_id=conversation_id,
        scope=enum_number(res.ConversationScope, "CONVERSATION_SCOPE_", scope),
        query=query,
        max_tokens=max_tokens,
        snippets_per_conversation=snippets_per_conversation,
        limit=limit,
        model=model,
    )
    return safe_call(lambda stubs: stubs.context.GetContextFromAllConversations, request, timeout)
