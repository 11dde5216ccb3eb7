"""`python -m tests.bench.formats --data PATH`: real agent runs through every provider's format.

Nothing is sent: the formats are pure functions. A run is equal when OpenAI's messages come back as
they were; it is equal in meaning when every event comes back with its words, arguments and
partner.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from tests.bench.harness import Report
from tests.unit.context.provider_checks import check_anthropic, check_gemini, check_responses

from annals_context.domain.events import Event
from annals_context.domain.formats.providers import PARSERS, RENDERERS
from annals_context.domain.model import PayloadFormat

FILE = Path("trajectories") / "tau_airline_dev.json"
EVERY = ">= 1"
CHECKS = {
    PayloadFormat.ANTHROPIC_MESSAGES: check_anthropic,
    PayloadFormat.GEMINI_CONTENTS: check_gemini,
    PayloadFormat.OPENAI_RESPONSES: check_responses,
}


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True, help="Folder of the data.")
def main(data: Path) -> None:
    """Take every trajectory to each format and back."""
    report = Report("formats", {})
    if not (data / FILE).is_file():
        report.note(f"skipped: {data} does not hold {FILE}")
        report.write()
        return
    runs = [run["messages"] for run in json.loads((data / FILE).read_bytes())]
    parse, render = PARSERS[PayloadFormat.OPENAI_CHAT], RENDERERS[PayloadFormat.OPENAI_CHAT]
    parsed = [parse(json.dumps(messages)).events for messages in runs]
    equal = [
        json.loads(render(events).payload) == messages
        for events, messages in zip(parsed, runs, strict=True)
    ]
    report.add("openai_chat_equal", _share(equal), "share", EVERY)
    for form, check in CHECKS.items():
        _measure(report, form, check, parsed)
    report.write()


def _measure(
    report: Report, form: PayloadFormat, check: Any, parsed: Sequence[Sequence[Event]]
) -> None:
    kept, valid, started = [], [], time.perf_counter()
    payloads = [RENDERERS[form](events).payload for events in parsed]
    backs = [PARSERS[form](payload).events for payload in payloads]
    seconds = time.perf_counter() - started
    for events, payload, back in zip(parsed, payloads, backs, strict=True):
        kept.append(meanings(events) == meanings(back))
        valid.append(_is_valid(check, payload))
    report.add(f"{form}_equal_in_meaning", _share(kept), "share", EVERY)
    report.add(f"{form}_valid", _share(valid), "share", EVERY)
    count = sum(len(events) for events in parsed)
    report.add(f"{form}_there_and_back", 1e6 * seconds / count, "µs per event")


def meanings(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Return what events say: arguments as values, calls by number, for ids are only names."""
    numbers: dict[str, int] = {}
    return [
        (
            *(event.type, event.role, event.tool_name, event.is_error),
            numbers.setdefault(event.tool_call_id, len(numbers)),
            json.loads(event.tool_input or "{}"),
            *(event.content, event.tool_result),
        )
        for event in events
    ]


def _is_valid(check: Any, payload: str) -> bool:
    try:
        check(payload)
    except (AssertionError, ValueError):
        return False
    return True


def _share(outcomes: Sequence[bool]) -> float:
    return sum(outcomes) / len(outcomes)


if __name__ == "__main__":
    main()
