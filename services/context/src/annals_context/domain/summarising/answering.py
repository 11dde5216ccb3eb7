"""Puts summaries that bear on a query into one text within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from annals_context.domain.summarising.kept import FoundEvent, KeptSummary
from annals_context.domain.summarising.selecting import Limits, terms_of
from annals_context.domain.summarising.summarise import summary_of_summaries

BETWEEN = "\n\n"
INDENT = "  "
MOST_PIECES = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """A summary of a conversation and how much it bears on the query, between 0 and 1."""

    conversation_id: str
    summary: KeptSummary
    score: float

    @property
    def retrieve_with(self) -> str:
        """The call that returns the events of its range."""
        block = self.summary.block
        return (
            f'ListEvents(conversation_id="{self.conversation_id}", '
            f"after_seq={block.first_seq - 1}, before_seq={block.last_seq + 1})"
        )

    @property
    def handles(self) -> tuple[str, ...]:
        """The events it quotes."""
        seqs = dict.fromkeys(cited.piece.seq for cited in self.summary.digest.citations)
        return tuple(f"#{seq}" for seq in seqs)


@dataclass(frozen=True, slots=True)
class Answer:
    """A text of `tokens` tokens and what it is made of, in its order."""

    text: str
    tokens: int
    candidates: tuple[Candidate, ...]
    omitted_count: int


def scored(
    conversation_id: str,
    summaries: Iterable[KeptSummary],
    query: str,
    found: Sequence[FoundEvent],
) -> list[Candidate]:
    """Return the summaries with their scores: half is the share of the query's terms they say,
    half the best hit of the search in their range.
    """
    wanted = set(terms_of(query))
    return [
        Candidate(conversation_id, summary, _score(conversation_id, summary, wanted, found))
        for summary in summaries
    ]


def _score(
    conversation_id: str, summary: KeptSummary, wanted: set[str], found: Sequence[FoundEvent]
) -> float:
    block = summary.block
    hits = [
        hit.score
        for hit in found
        if hit.conversation_id == conversation_id and block.first_seq <= hit.seq <= block.last_seq
    ]
    shared = len(wanted.intersection(terms_of(summary.digest.text)))
    return (shared / max(1, len(wanted)) + min(1.0, max(hits, default=0.0))) / 2


def answer(
    candidates: Sequence[Candidate], max_tokens: int, count: Callable[[str], int], *, query: str
) -> Answer:
    """Return the best candidates that fit, best first; the first that does not fit is shortened.

    Equal scores come newest first. Empty when not even a sentence fits.
    """
    ranked = sorted(candidates, key=_rank)
    text, tokens, shown = "", 0, list[Candidate]()
    for candidate in ranked:
        longer = _with(text, candidate)
        if (counted := count(longer)) <= max_tokens:
            text, tokens = longer, counted
            shown.append(candidate)
            continue
        shorter = _shortened(text, candidate, max_tokens, count, query)
        if shorter is not None:
            text = _with(text, shorter)
            tokens = count(text)
            shown.append(shorter)
        break
    return Answer(text, tokens, tuple(shown), len(ranked) - len(shown))


def smallest_budget(
    candidates: Sequence[Candidate], max_tokens: int, count: Callable[[str], int], *, query: str
) -> int:
    """Return the least budget above `max_tokens`, under which nothing fits, that holds words."""
    first = sorted(candidates, key=_rank)[:1]
    enough = count(_with("", first[0]))
    budgets = range(max_tokens + 1, enough)
    return next((b for b in budgets if answer(first, b, count, query=query).text), enough)


def _heading(candidate: Candidate) -> str:
    """Return the line above a summary. What it says is indented, so that it cannot pose as one."""
    block = candidate.summary.block
    return (
        f"Summary of #{block.first_seq}-#{block.last_seq} "
        f"of conversation {candidate.conversation_id}:"
    )


def _rank(candidate: Candidate) -> tuple[float, str, int]:
    return -candidate.score, candidate.conversation_id, -candidate.summary.block.last_seq


def _with(text: str, candidate: Candidate) -> str:
    lines = candidate.summary.digest.text.split("\n")
    said = "\n".join(f"{INDENT}{line}" if line else "" for line in lines)
    return f"{text}{BETWEEN if text else ''}{_heading(candidate)}\n{said}"


def _shortened(
    text: str, candidate: Candidate, max_tokens: int, count: Callable[[str], int], query: str
) -> Candidate | None:
    """Return the candidate in as few words as fit behind the text, or None."""
    empty = _with(text, _wordless(candidate))
    left = max_tokens - count(empty)
    while left > 0:
        short = summary_of_summaries(
            [candidate.summary.digest], Limits(left, MOST_PIECES), count, focus=query
        )
        if not short.text:
            return None
        made = KeptSummary(candidate.summary.block, candidate.summary.level, short)
        shorter = replace(candidate, summary=made)
        if count(_with(text, shorter)) <= max_tokens:
            return shorter
        left -= max(1, left // 8)
    return None


def _wordless(candidate: Candidate) -> Candidate:
    digest = replace(candidate.summary.digest, text="", citations=())
    return replace(candidate, summary=replace(candidate.summary, digest=digest))
