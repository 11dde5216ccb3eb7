"""`python -m tests.golden.context.page`: writes docs/contexts.md anew."""

from __future__ import annotations

from pathlib import Path

from tests.golden.context.harbour import (
    QUESTION,
    found,
    harbour,
    periods_of,
    summaries_of,
    topics_of,
)
from tests.unit.context.counters import O200K

from annals_context.domain.assembly import assemble
from annals_context.domain.model import ContextRequest, PayloadFormat, PreparedContext

PAGE = Path(__file__).parents[3] / "docs" / "contexts.md"
BUDGET_TOKENS = 2_000
RESERVE_TOKENS = 200
SIZES = (30, 300, 3_000, 30_000)
LISTED_EVENTS = 110
SOUGHT_EVENTS = 100
HEAD = Path(__file__).with_name("page_head.md")


def context_of(n_events: int) -> PreparedContext:
    """Return what a model would see of the conversation's first events."""
    events = harbour(n_events)
    newest = events[::-1]
    return assemble(
        ContextRequest(
            counter=O200K,
            budget_tokens=BUDGET_TOKENS,
            response_reserve_tokens=RESERVE_TOKENS,
            total_events=n_events,
            recent=newest[:10],
            relevant=found(events, SOUGHT_EVENTS),
            others=newest[10:LISTED_EVENTS],
            system_prompt="You are the assistant of a small harbour office.",
            current_message=QUESTION,
            payload_format=PayloadFormat.TEXT,
            topics=topics_of(events),
            periods=periods_of(events),
            summaries=summaries_of(events),
        )
    )


def page() -> str:
    """Return the page: what the head says, and a chapter for each size."""
    return HEAD.read_text(encoding="utf-8") + "".join(_chapter(size) for size in SIZES)


def _chapter(n_events: int) -> str:
    context = context_of(n_events)
    rows = [
        f"| {entry.section} | {entry.tokens:,} | {entry.full_count} | {entry.snippet_count} "
        f"| {entry.stub_count} |"
        for entry in context.ledger
    ]
    return "\n".join(
        [
            f"\n## {n_events:,} events: {context.strategy}\n",
            (
                f"{context.total_tokens:,} of {BUDGET_TOKENS - RESERVE_TOKENS:,} tokens; "
                f"{context.omitted_events:,} events are not in it.\n"
            ),
            "| section | tokens | full | snippets | stubs |",
            "|---|---|---|---|---|",
            *rows,
            "\n<details><summary>The payload</summary>\n",
            f"```text\n{context.payload}```\n",
            "</details>\n",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
