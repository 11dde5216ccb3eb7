"""Prepares the context of one conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from annals_context.commands.background import ReadBackground
from annals_context.commands.gathering import MAX_QUERY_CHARS, Found, Gather, Material
from annals_context.commands.partners import FetchExpanded, FetchPartners
from annals_context.commands.prepare_request import Prepare, Prepared
from annals_context.commands.prompting import prompt_of
from annals_context.domain.assembly import assemble
from annals_context.domain.counting import Counter
from annals_context.domain.events import Event
from annals_context.domain.model import ContextRequest, Hit
from annals_context.domain.options import SnippetStrategy, StrategyName
from annals_context.domain.snippets import best_sentence
from annals_context.domain.strategies import has_material
from annals_context.ports import Caller, Storage, Summaries, Topics

TOPICS_MISSING = "topics_missing"


class PrepareContext:
    """Asks storage for everything at once, then fits it into the budget.

    Without `topics` nothing was clustered, without `summaries` nothing was summarised.
    """

    def __init__(
        self,
        storage: Storage,
        counter_for: Callable[[str], Counter],
        topics: Topics | None = None,
        summaries: Summaries | None = None,
    ) -> None:
        self._gather = Gather(storage, ReadBackground(topics, summaries))
        self._expanded, self._partners = FetchExpanded(storage), FetchPartners(storage)
        self._counter_for = counter_for

    async def __call__(self, caller: Caller, request: Prepare) -> Prepared:
        """Raises BudgetTooSmallError, TemplateInvalidError and what storage raises.

        A failed search only degrades.
        """
        material = await self._expanded(caller, request, await self._gather(caller, request))
        partners = await self._partners(caller, request, material)
        context_request = self._context_request(request, material, partners)
        # Counting and fitting take milliseconds of pure CPU: not on the event loop.
        context = await asyncio.to_thread(assemble, context_request)
        degraded = _degraded(material, context_request)
        branch = request.branch or material.conversation.current_branch
        return Prepared(context, material.conversation.version, degraded, branch)

    def _context_request(
        self, request: Prepare, material: Material, partners: Sequence[Event]
    ) -> ContextRequest:
        newest, options = material.newest.events, material.options
        return ContextRequest(
            counter=self._counter_for(request.model or material.agent.model),
            budget_tokens=request.budget_tokens,
            response_reserve_tokens=request.response_reserve_tokens,
            total_events=material.total_events,
            recent=newest[: options.recent_events],
            relevant=_relevant(material.found, options.snippet_strategy),
            others=(*newest[options.recent_events :], *material.expanded, *partners),
            system_prompt=prompt_of(material.conversation, material.agent).text,
            current_message=request.current_message,
            payload_format=request.payload_format,
            options=options,
            topics=material.background.topics,
            periods=material.background.periods,
            summaries=material.background.summaries,
            pins=request.pins,
            required=request.required,
        )


def _relevant(found: Found, strategy: SnippetStrategy) -> tuple[Hit, ...]:
    if strategy is not SnippetStrategy.FIRST:
        return found.answer.hits
    return tuple(_focused(hit, found.query) for hit in found.answer.hits)


def _focused(hit: Hit, query: str) -> Hit:
    """Let a snippet begin at the sentence of the chunk that speaks most of the query."""
    start = best_sentence(hit.event.body, hit.chunk_start, hit.chunk_end, query)
    return replace(hit, chunk_start=start)


def _degraded(material: Material, request: ContextRequest) -> tuple[str, ...]:
    """Return why the context is less than asked for, without repeating a reason."""
    reasons = [*material.found.answer.degraded, *material.background.degraded]
    asked_for: StrategyName = request.options.strategy
    if not material.background.degraded and not has_material(request, asked_for):
        reasons.append(TOPICS_MISSING)
    return tuple(dict.fromkeys(reasons))


__all__ = ["MAX_QUERY_CHARS", "TOPICS_MISSING", "Prepare", "PrepareContext", "Prepared"]
