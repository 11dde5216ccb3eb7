"""Writes a selection down and accounts for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from annals_context.domain.fitting import Selection
from annals_context.domain.formats.layout import Line, Parts
from annals_context.domain.formats.rendering import Rendered
from annals_context.domain.ledger import Ledger, apportion, event_item, make_ledger
from annals_context.domain.model import ContextItem, ContextRequest, DetailLevel, Section
from annals_context.domain.planning import Candidate
from annals_context.domain.pricing import PricedPiece, Pricing


@dataclass(frozen=True, slots=True)
class Written:
    """A payload, its tokens and where they went."""

    rendered: Rendered
    total_tokens: int
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class _PricedLine:
    line: Line
    candidate: Candidate
    tokens: int


def write(request: ContextRequest, pricing: Pricing, heading: str, selection: Selection) -> Written:
    """Return the payload of a selection; its tokens are those of the finished text."""
    dated = _dated(sorted(_lines(pricing, selection), key=lambda one: one.line.event.seq))
    native = _native(pricing, selection)
    parts = Parts(
        system=request.system_prompt,
        heading=heading,
        lines=[one.line for one in dated],
        native=[priced.piece for _, _, pieces in native for priced in pieces],
        current=selection.current.piece if selection.current else None,
    )
    rendered = pricing.layout.compose(parts)
    total_tokens = request.counter.count(rendered.payload)
    items = [
        *_system_items(request, pricing),
        *(_line_item(pricing, one) for one in dated),
        *_native_items(native),
        *_current_items(pricing, selection),
    ]
    return Written(rendered, total_tokens, make_ledger(items, total_tokens))


def _lines(pricing: Pricing, selection: Selection) -> Iterable[_PricedLine]:
    for candidate, detail in selection.placed:
        if candidate.is_native:
            continue
        pieces = pricing.pieces(candidate, detail)
        for event, priced in zip(candidate.unit.events, pieces, strict=True):
            line = Line(event, detail, candidate.start_of(event))
            yield _PricedLine(line, candidate, priced.tokens)


def _dated(priced_lines: Sequence[_PricedLine]) -> list[_PricedLine]:
    """Give the first line of each day its date."""
    dated = []
    previous = ""
    for one in priced_lines:
        date = one.line.event.date
        is_new = date != previous
        dated.append(replace(one, line=replace(one.line, date=date)) if is_new else one)
        previous = date
    return dated


def _native(
    pricing: Pricing, selection: Selection
) -> list[tuple[Candidate, DetailLevel, tuple[PricedPiece, ...]]]:
    native = [
        (candidate, detail, pricing.pieces(candidate, detail))
        for candidate, detail in selection.placed
        if candidate.is_native
    ]
    return sorted(native, key=lambda one: one[0].first_seq)


def _system_items(request: ContextRequest, pricing: Pricing) -> Iterable[ContextItem]:
    if request.system_prompt:
        tokens = pricing.count(pricing.layout.system(request.system_prompt).text)
        yield ContextItem("", 0, Section.SYSTEM, DetailLevel.FULL, tokens)


def _line_item(pricing: Pricing, one: _PricedLine) -> ContextItem:
    return event_item(
        one.line.event,
        one.candidate.section,
        one.line.detail,
        tokens=one.tokens + pricing.date_tokens(one.line.date),
        score=one.candidate.score_of(one.line.event),
    )


def _native_items(
    native: Iterable[tuple[Candidate, DetailLevel, tuple[PricedPiece, ...]]],
) -> Iterable[ContextItem]:
    for candidate, detail, pieces in native:
        for priced in pieces:
            events = priced.piece.events
            shares = apportion(priced.tokens, [len(event.body) + 1 for event in events])
            for event, tokens in zip(events, shares, strict=True):
                yield event_item(
                    event, candidate.section, detail, tokens=tokens, score=candidate.score_of(event)
                )


def _current_items(pricing: Pricing, selection: Selection) -> Iterable[ContextItem]:
    current = selection.current
    if current:
        tokens = pricing.count(current.piece.text)
        yield ContextItem("", 0, Section.CURRENT, current.detail, tokens)
