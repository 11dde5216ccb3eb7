"""Which words of an event are shown where it is not shown whole.

Layouts write what they are given, so that every format shows the same words: an event to be shown
as a snippet comes to them with its snippet for its words, where these do not just begin at a place
of the text. A tool result too large to be of use is cut in the same way even where its call stands
in full: the pair stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from annals_context.domain.counting import Counter, exceeds
from annals_context.domain.events import Event, EventType
from annals_context.domain.key_sentences import condensed, core_start
from annals_context.domain.model import ContextRequest, DetailLevel
from annals_context.domain.options import IndexOptions, SnippetStrategy
from annals_context.domain.pairing import Unit
from annals_context.domain.planning import Candidate
from annals_context.domain.snippets import ELLIPSIS, snippet

CHUNKS_RETRIEVAL = 'get_message_with_chunks("{}")'


@dataclass(slots=True)
class Condenser:
    """Shows events of one request. `newest_seq`: the event that is never cut for its size; what a
    reader asked for in full is not either.
    """

    options: IndexOptions
    counter: Counter
    newest_seq: int
    _giants: dict[int, bool] = field(default_factory=dict)

    def unit(self, candidate: Candidate, detail: DetailLevel) -> Unit:
        """Return a unit with the words its events are shown with at a level."""
        if not self._changes(candidate, detail):
            return candidate.unit
        return candidate.unit.mapped(lambda event: self._shown(candidate, event, detail))

    def start(self, candidate: Candidate, event: Event) -> int:
        """Return where a snippet of an event that `unit` returned begins in its words."""
        chunk = candidate.chunk_of(event)
        is_plain = self.options.snippet_strategy is SnippetStrategy.FIRST
        return chunk[0] if chunk and is_plain else 0

    def level(self, candidate: Candidate, event: Event, detail: DetailLevel) -> DetailLevel:
        """Return how much of an event is there when its unit is shown at a level."""
        is_cut = self._changes(candidate, detail) and self._giants.get(event.seq, False)
        return DetailLevel.SNIPPET if is_cut and detail is DetailLevel.FULL else detail

    def _changes(self, candidate: Candidate, detail: DetailLevel) -> bool:
        match detail:
            case DetailLevel.FULL:
                giants = (self._is_giant(event) for event in candidate.unit.events)
                return not candidate.is_expanded and any(giants)
            case DetailLevel.SNIPPET:
                return self.options.snippet_strategy is not SnippetStrategy.FIRST
            case DetailLevel.STUB:
                return False

    def _shown(self, candidate: Candidate, event: Event, detail: DetailLevel) -> Event:
        if detail is DetailLevel.FULL:
            return self._cut(event) if self._is_giant(event) else event
        if len(event.body) <= self.options.snippet_chars:
            return event
        return event.with_body(self._snippet(event.body, candidate.chunk_of(event)))

    def _snippet(self, body: str, chunk: tuple[int, int] | None) -> str:
        """Return a snippet that needs no more cutting: marks of what is left out count."""
        chars = self.options.snippet_chars
        if self.options.snippet_strategy is SnippetStrategy.SUMMARY:
            return condensed(body, max_chars=chars)
        start = core_start(body, *chunk) if chunk else core_start(body)
        return snippet(body, max_chars=max(1, chars - 2 * len(ELLIPSIS)), start=start)

    def _cut(self, event: Event) -> Event:
        shown = snippet(event.body, max_chars=self.options.snippet_chars)
        whole = CHUNKS_RETRIEVAL.format(event.handle)
        return event.with_body(f"{shown} [cut short; retrieve with {whole}]")

    def _is_giant(self, event: Event) -> bool:
        if event.type is not EventType.TOOL_RESULT or event.seq in {0, self.newest_seq}:
            return False
        known = self._giants.get(event.seq)
        if known is None:
            limit = self.options.chunk_threshold_tokens
            known = self._giants[event.seq] = exceeds(self.counter, event.body, limit)
        return known


def condenser_for(request: ContextRequest) -> Condenser:
    """Return the condenser of a request."""
    seqs = [event.seq for event in (*request.recent, *request.others)]
    return Condenser(request.options, request.counter, max(seqs, default=0))
