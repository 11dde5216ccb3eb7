"""Builds a context that fits: the budget holds, and it never comes back empty."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from annals_common.errors import BudgetTooSmallError
from annals_context.domain.counting import LONGEST_TOKEN_BYTES, available_for, margin_tokens
from annals_context.domain.fitting import ALL_DETAILS, CurrentMessage, Filling, Selection
from annals_context.domain.formats.layouts import layout_for
from annals_context.domain.model import (
    ContextRequest,
    CounterInfo,
    DetailLevel,
    PreparedContext,
)
from annals_context.domain.planning import Plan, make_plan, make_whole_plan
from annals_context.domain.pricing import Pricing
from annals_context.domain.snippets import ELLIPSIS, cut_to_graphemes, snippet
from annals_context.domain.strategies import Strategy, choose
from annals_context.domain.writing import Written, write

CURRENT_STUB = "[message left out: it exceeds the token budget]"
_MAX_ATTEMPTS = 8
_CHARS_PER_TOKEN = 4
_VERSION_CHARS = 16


@dataclass(frozen=True, slots=True)
class _Assembly:
    request: ContextRequest
    strategy: Strategy
    pricing: Pricing
    usable_tokens: int


def assemble(request: ContextRequest) -> PreparedContext:
    """Return the context for a request; the same request gives the same bytes.

    Its tokens never exceed the budget less the reserve and, where the model's tokenizer is not
    public, the margin. Raises BudgetTooSmallError with the smallest budget that works.
    """
    available = request.budget_tokens - request.response_reserve_tokens
    margin = margin_tokens(request.counter, max(0, available))
    layout = layout_for(request.payload_format, snippet_chars=request.snippet_chars)
    assembly = _Assembly(
        request,
        choose(request.total_events, request.strategy),
        Pricing(layout, request.counter),
        available - margin,
    )
    return _prepared(assembly, _fitted(assembly), margin)


def _fitted(assembly: _Assembly) -> Written:
    whole = _whole(assembly)
    if whole:
        return whole
    plan = make_plan(assembly.request)
    target = assembly.usable_tokens
    for _ in range(_MAX_ATTEMPTS):
        selection = _select(assembly, plan, target)
        if selection is None:
            break
        written = _write(assembly, selection)
        if written.total_tokens <= assembly.usable_tokens:
            return _richer(assembly, plan, target, written)
        target -= max(1, written.total_tokens - assembly.usable_tokens)
    return _smallest(assembly, plan)


def _richer(assembly: _Assembly, plan: Plan, target: int, written: Written) -> Written:
    """Spend what pieces were priced too high: turns of one speaker take less when joined."""
    if not written.ledger.excess_tokens:
        return written
    selection = _select(assembly, plan, target + written.ledger.excess_tokens)
    richer = _write(assembly, selection) if selection else written
    is_better = written.total_tokens < richer.total_tokens <= assembly.usable_tokens
    return richer if is_better else written


def _whole(assembly: _Assembly) -> Written | None:
    """Write the conversation as one window when the strategy likes that and it fits."""
    plan = make_whole_plan(assembly.request) if assembly.strategy.extends_recent_window else None
    if plan is None:
        return None
    filling = _filling(assembly, assembly.usable_tokens)
    current = _full_current(assembly)
    filling.remaining -= _fixed_tokens(assembly, current)
    if not all(filling.offer(candidate, ALL_DETAILS[:1]) for candidate in plan.recent):
        return None
    written = _write(assembly, Selection(filling.placed(), current))
    return written if written.total_tokens <= assembly.usable_tokens else None


def _select(assembly: _Assembly, plan: Plan, target: int) -> Selection | None:
    """Choose what fits into `target` tokens; None when what must be there does not."""
    filling = _filling(assembly, target - _fixed_tokens(assembly, None))
    if filling.remaining < 0:
        return None
    if not filling.expand(plan.expanded, _least_tokens(assembly, plan, filling)):
        return None
    current = _current_within(assembly, filling.remaining)
    if assembly.request.current_message and current is None:
        return None
    filling.remaining -= assembly.pricing.count(current.piece.text) if current else 0
    if plan.mandatory and not filling.ensure(plan.mandatory):
        return None
    filling.fill(plan)
    return Selection(filling.placed(), current)


def _least_tokens(assembly: _Assembly, plan: Plan, filling: Filling) -> int:
    """Return about what must be left to what has to be there beside expanded events."""
    if not plan.expanded:
        return 0
    if assembly.request.current_message:
        shortest = _short_currents(assembly)
        return min(assembly.pricing.count(one.piece.text) for one in shortest)
    if plan.mandatory is None or plan.mandatory.is_expanded:
        return 0
    return filling.least_tokens(plan.mandatory)


def _filling(assembly: _Assembly, target: int) -> Filling:
    return Filling(assembly.pricing, assembly.strategy, target, assembly.request.snippet_chars)


def _fixed_tokens(assembly: _Assembly, current: CurrentMessage | None) -> int:
    pricing, prompt = assembly.pricing, assembly.request.system_prompt
    texts = [*pricing.layout.brackets()]
    if prompt:
        texts.append(pricing.layout.system(prompt).text)
    if current:
        texts.append(current.piece.text)
    return sum(pricing.count(text) for text in texts)


def _full_current(assembly: _Assembly) -> CurrentMessage | None:
    text = assembly.request.current_message
    return _current(assembly, text, DetailLevel.FULL) if text else None


def _current(assembly: _Assembly, text: str, detail: DetailLevel) -> CurrentMessage:
    return CurrentMessage(assembly.pricing.layout.current(text), detail)


def _current_within(assembly: _Assembly, limit: int) -> CurrentMessage | None:
    """Return as much of the current message as fits into `limit` tokens."""
    text = assembly.request.current_message
    if not text or limit <= 0:
        return None
    for shown in _current_choices(assembly, limit):
        if assembly.pricing.count(shown.piece.text) <= limit:
            return shown
    return None


def _current_choices(assembly: _Assembly, limit: int) -> Iterable[CurrentMessage]:
    text, least = assembly.request.current_message, assembly.request.snippet_chars
    if not assembly.pricing.surely_exceeds(text, limit):
        yield _current(assembly, text, DetailLevel.FULL)
    chars = min(len(text), limit * _CHARS_PER_TOKEN)
    while chars > least:
        cut = cut_to_graphemes(text, chars) + ELLIPSIS
        yield _current(assembly, cut, DetailLevel.SNIPPET)
        chars = chars * 3 // 4
    yield from _short_currents(assembly)


def _short_currents(assembly: _Assembly) -> Iterable[CurrentMessage]:
    text, chars = assembly.request.current_message, assembly.request.snippet_chars
    yield _current(assembly, snippet(text, max_chars=chars), DetailLevel.SNIPPET)
    yield _current(assembly, CURRENT_STUB, DetailLevel.STUB)


def _smallest(assembly: _Assembly, plan: Plan) -> Written:
    """Return the context that takes the fewest tokens, if that fits."""
    smallest: Written | None = None
    for selection in _least_selections(assembly, plan):
        if smallest and _is_longer(selection, smallest.total_tokens):
            continue
        written = _write(assembly, selection)
        if smallest is None or written.total_tokens <= smallest.total_tokens:
            smallest = written
    if smallest is None or smallest.total_tokens > assembly.usable_tokens:
        raise _too_small(assembly, smallest.total_tokens if smallest else 1)
    return smallest


def _least_selections(assembly: _Assembly, plan: Plan) -> Iterable[Selection]:
    """Return what must be there at every level, the least first."""
    required = tuple((one, DetailLevel.FULL) for one in plan.expanded if one.is_required)
    if assembly.request.current_message:
        for current in reversed(list(_short_currents(assembly))):
            yield Selection(required, current)
        yield Selection(required, _full_current(assembly))
    elif plan.mandatory and not plan.mandatory.is_required:
        for detail in filter(plan.mandatory.allows, reversed(ALL_DETAILS)):
            yield Selection((*required, (plan.mandatory, detail)))
    else:
        yield Selection(required)


def _is_longer(selection: Selection, tokens: int) -> bool:
    """Tell by length alone that a selection takes more than `tokens`."""
    chars = sum(
        len(event.body)
        for candidate, detail in selection.placed
        for event in candidate.unit.events
        if detail is DetailLevel.FULL
    )
    chars += len(selection.current.piece.text) if selection.current else 0
    return chars > tokens * LONGEST_TOKEN_BYTES


def _too_small(assembly: _Assembly, least_tokens: int) -> BudgetTooSmallError:
    request = assembly.request
    available = available_for(request.counter, least_tokens)
    return BudgetTooSmallError(
        budget=request.budget_tokens, minimum=available + request.response_reserve_tokens
    )


def _write(assembly: _Assembly, selection: Selection) -> Written:
    return write(assembly.request, assembly.pricing, assembly.strategy.heading, selection)


def _prepared(assembly: _Assembly, written: Written, margin: int) -> PreparedContext:
    request, counter = assembly.request, assembly.request.counter
    shown = sum(1 for item in written.ledger.items if item.seq)
    return PreparedContext(
        payload=written.rendered.payload,
        payload_format=request.payload_format,
        total_tokens=written.total_tokens,
        counter=CounterInfo(counter.encoding, counter.exact, margin),
        ledger=written.ledger.entries,
        items=written.ledger.items,
        omitted_events=max(0, request.total_events - shown),
        strategy=assembly.strategy.name,
        context_version=_version(request, written.rendered.payload),
        repairs=written.rendered.repairs,
    )


def _version(request: ContextRequest, payload: str) -> str:
    text = "\0".join((request.payload_format.value, request.counter.encoding, payload))
    return hashlib.sha256(text.encode()).hexdigest()[:_VERSION_CHARS]
