"""Parts of events as lines of text, by conversation and position.

```
Conversation 0199c7a2-… "Refund of order 4711":
#41 [2024-10-15] user: Where is my order?
#57 [2024-10-16] assistant: "…the parcel came back on Monday, so we refund…"
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from annals_context.domain.events import Event
from annals_context.domain.formats.lines import indented, speaker
from annals_context.domain.model import Hit
from annals_context.domain.snippets import ELLIPSIS, best_sentence, cut_to_graphemes

Place = tuple[str, int]
"""Conversation and position of an event."""
CUTS_CHARS = (400, 200, 100, 50)
NEIGHBOUR_CHARS = 200


@dataclass(frozen=True, slots=True)
class Passage:
    """The words of an event from `start_char` to `end_char`; `score` 0: it was not found itself."""

    event: Event
    start_char: int
    end_char: int
    score: float = 0.0

    @property
    def place(self) -> Place:
        """Where its event stands."""
        return place_of(self.event)

    @property
    def words(self) -> str:
        """What it says."""
        return self.event.body[self.start_char : self.end_char]

    @property
    def line(self) -> str:
        """It as a line; what is no whole event is in quotes."""
        date = f" [{self.event.date}]" if self.event.date else ""
        return f"{self.event.handle}{date} {speaker(self.event)}: {self._shown}"

    @property
    def _shown(self) -> str:
        length = len(self.event.body)
        if (self.start_char, self.end_char) == (0, length):
            return indented(self.event.body)
        words = " ".join(self.words.split())
        before = ELLIPSIS if self.start_char else ""
        after = ELLIPSIS if self.end_char < length else ""
        return f'"{before}{words}{after}"'


@dataclass(frozen=True, slots=True)
class Group:
    """Passages of one conversation, by position."""

    conversation_id: str
    passages: tuple[Passage, ...]


def place_of(event: Event) -> Place:
    """Return where an event stands."""
    return (event.conversation_id, event.seq)


def passages_of(hit: Hit, query: str) -> Iterator[Passage]:
    """Return what could be shown of a hit: its best chunk, then ever shorter parts of it that
    begin at the sentence which speaks most of the query.
    """
    body = hit.event.body
    start = min(hit.chunk_start, len(body))
    end = min(hit.chunk_end, len(body)) if hit.chunk_end > start else len(body)
    yield Passage(hit.event, start, end, hit.score)
    focus = best_sentence(body, start, end, query)
    for chars in CUTS_CHARS:
        if chars < end - start:
            yield _cut(hit.event, focus, end, chars, hit.score)


def neighbour(event: Event, score: float = 0.0) -> Passage:
    """Return what is shown of an event beside one that was found: its beginning."""
    return _cut(event, 0, len(event.body), NEIGHBOUR_CHARS, score)


def _cut(event: Event, start: int, end: int, chars: int, score: float) -> Passage:
    # A margin, so that the cut sees whether a grapheme goes on behind it.
    words = event.body[start : min(end, start + 2 * chars)]
    return Passage(event, start, start + len(cut_to_graphemes(words, chars)), score)


def grouped(passages: Iterable[Passage]) -> list[Group]:
    """Return passages by conversation, the one with the best of them first."""
    by_id: dict[str, list[Passage]] = {}
    for passage in passages:
        by_id.setdefault(passage.event.conversation_id, []).append(passage)
    ranked = sorted(by_id.items(), key=lambda one: (-max(p.score for p in one[1]), one[0]))
    return [Group(key, tuple(sorted(own, key=lambda p: p.event.seq))) for key, own in ranked]


def heading(conversation_id: str, titles: Mapping[str, str]) -> str:
    """Return the line above the passages of a conversation."""
    title = " ".join(titles.get(conversation_id, "").split())
    return f"Conversation {conversation_id}" + (f' "{title}":' if title else ":")


def written(groups: Sequence[Group], titles: Mapping[str, str] | None) -> str:
    """Return groups as text; without `titles` there is but one conversation and no heading."""
    blocks = []
    for group in groups:
        head = [] if titles is None else [heading(group.conversation_id, titles)]
        blocks.append("".join(f"{line}\n" for line in (*head, *(p.line for p in group.passages))))
    return "\n".join(blocks)
