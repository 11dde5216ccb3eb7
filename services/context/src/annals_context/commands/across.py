"""Returns what other conversations of the same user, agent or tenant say about a query."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from annals_common.errors import FieldInvalidError
from annals_context.commands.retrieving import Retrieval
from annals_context.commands.together import first_error
from annals_context.domain.hit_order import worth_showing
from annals_context.domain.model import Hit
from annals_context.domain.passage_fitting import Fitted, PassageRequest, fit_passages
from annals_context.ports import Caller, ConversationFacts, RetrievalScope

HITS_TO_FIND = 200
"""Some are of the conversation in hand, and some conversations have more than their share."""


class Shared(StrEnum):
    """What conversations have in common."""

    USER = "user"
    AGENT = "agent"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class AcrossWanted:
    """A validated request. `conversation_id` is in hand and left out; it may be empty with TENANT.

    `shared`: what the others have in common with it.
    """

    conversation_id: str
    shared: Shared
    query: str
    max_tokens: int
    snippets_per_conversation: int
    most_conversations: int
    model: str


@dataclass(frozen=True, slots=True)
class AcrossFound:
    """Snippets that fit, the titles of their conversations, and why there may be more."""

    fitted: Fitted
    titles: dict[str, str]
    degraded: tuple[str, ...]


class GetContextFromAllConversations:
    """Searches all of them at once, then takes the best of each."""

    def __init__(self, retrieval: Retrieval) -> None:
        self._retrieval = retrieval

    async def __call__(self, caller: Caller, wanted: AcrossWanted) -> AcrossFound:
        """Raises BudgetTooSmallError, FieldInvalidError and what storage raises."""
        scope = await self._scope(caller, wanted)
        found = await self._retrieval.search(caller, wanted.query, scope, limit=HITS_TO_FIND)
        hits = _best_of_each(found.hits, wanted)
        titles = await self._titles(caller, hits)
        request = PassageRequest(
            # What was deleted since it was searched has no title any more.
            hits=[hit for hit in hits if hit.event.conversation_id in titles],
            query=wanted.query,
            counter=self._retrieval.counter_for(wanted.model),
            max_tokens=wanted.max_tokens,
            titles=titles,
        )
        fitted = await asyncio.to_thread(fit_passages, request)
        return AcrossFound(fitted, titles, found.degraded)

    async def _scope(self, caller: Caller, wanted: AcrossWanted) -> RetrievalScope:
        if not wanted.conversation_id:
            return RetrievalScope()
        in_hand = await self._retrieval.storage.get_conversation(caller, wanted.conversation_id)
        match wanted.shared:
            case Shared.USER:
                return _of_user(in_hand)
            case Shared.AGENT:
                return _of_agent(in_hand)
            case Shared.TENANT:
                return RetrievalScope()

    async def _titles(self, caller: Caller, hits: Sequence[Hit]) -> dict[str, str]:
        ids = dict.fromkeys(hit.event.conversation_id for hit in hits)
        async with first_error(), asyncio.TaskGroup() as tasks:
            reads = {one: tasks.create_task(self._retrieval.title(caller, one)) for one in ids}
        titles = {one: read.result() for one, read in reads.items()}
        return {one: title for one, title in titles.items() if title is not None}


def _of_user(in_hand: ConversationFacts) -> RetrievalScope:
    if in_hand.user_id:
        return RetrievalScope(user_id=in_hand.user_id)
    if in_hand.session_id:
        return RetrievalScope(session_id=in_hand.session_id)
    raise FieldInvalidError("scope", "USER needs a conversation with a user or a session")


def _of_agent(in_hand: ConversationFacts) -> RetrievalScope:
    if in_hand.agent_id:
        return RetrievalScope(agent_id=in_hand.agent_id)
    raise FieldInvalidError("scope", "AGENT needs a conversation with an agent")


def _best_of_each(hits: Sequence[Hit], wanted: AcrossWanted) -> list[Hit]:
    """Return so many hits of so many conversations, best first."""
    taken: dict[str, int] = {}
    chosen = []
    others = [hit for hit in hits if hit.event.conversation_id != wanted.conversation_id]
    for hit in worth_showing(others):
        key = hit.event.conversation_id
        if key not in taken and len(taken) >= wanted.most_conversations:
            continue
        if taken.get(key, 0) < wanted.snippets_per_conversation:
            taken[key] = taken.get(key, 0) + 1
            chosen.append(hit)
    return chosen
