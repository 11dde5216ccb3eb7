"""What a summary is made of: single sentences, each with who said it, when and in which event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.snippets import ELLIPSIS, cut_to_graphemes, sentences

MAX_PIECE_CHARS = 320
"""Longer sentences are logs, data and code: their beginning stands for them."""
MAX_EVENT_CHARS = 16_384
"""What lies behind in a single event is not read."""
_INSTRUCTIONS = frozenset({Role.SYSTEM, Role.TOOL})


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence, on one line, word for word. `date`: of its event in UTC, or empty."""

    event_id: str
    seq: int
    speaker: str
    date: str
    text: str


def pieces_of(events: Iterable[Event]) -> list[Piece]:
    """Return the sentences of what belongs in a context, in order.

    What people and models said to each other; where there is nothing of that, all the rest.
    """
    shown = [event for event in events if event.belongs_in_context]
    said = [event for event in shown if _is_said(event)]
    return [piece for event in said or shown for piece in _pieces(event)]


def in_one_line(text: str) -> str:
    """Return the text with its white space collapsed, line ends of every kind included."""
    return " ".join(text.split())


def is_verbatim(piece: Piece, events: Sequence[Event]) -> bool:
    """Whether the event that the piece cites says these words."""
    words = piece.text.removesuffix(ELLIPSIS)
    return any(
        event.seq == piece.seq and words in in_one_line(event.body[:MAX_EVENT_CHARS])
        for event in events
    )


def _is_said(event: Event) -> bool:
    return event.type is EventType.MESSAGE and event.role not in _INSTRUCTIONS


def _pieces(event: Event) -> Iterator[Piece]:
    body = event.body
    speaker = _speaker(event)
    for start, end in sentences(body, 0, min(len(body), MAX_EVENT_CHARS)):
        text = in_one_line(body[start:end])
        if any(character.isalnum() for character in text):
            yield Piece(event.event_id, event.seq, speaker, event.date, _shortened(text))


def _shortened(text: str) -> str:
    cut = cut_to_graphemes(text, MAX_PIECE_CHARS)
    return cut if len(cut) == len(text) else f"{cut}{ELLIPSIS}"


def _speaker(event: Event) -> str:
    if event.type is not EventType.MESSAGE:
        return in_one_line(event.tool_name) or event.type.value.replace("_", " ")
    named = in_one_line(event.author_name)
    return named or (event.role.value if event.role else EventType.MESSAGE.value)
