"""Events as agents leave them: many short messages, some long replies, a few tools."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from tests.bench.texts import messages

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import assistant, tool_call, tool_result, user

_SHARES = {"short": 60, "reply": 28, "long": 6, "json": 2, "log": 2, "table": 2}
_SENTENCES = {"short": (1, 2), "reply": (2, 8), "long": (12, 50)}
_ROWS = (10, 60)


def mixed_events(number: int, *, seed: int = 1) -> Iterator[pb.NewEvent]:
    """Yield `number` distinct messages and results; the same seed makes the same ones."""
    draw = random.Random(seed)
    sentences = messages(number * 100, seed=seed)
    kinds = draw.choices(list(_SHARES), list(_SHARES.values()), k=number)
    for number, kind in enumerate(kinds):
        if kind in _SENTENCES:
            yield _message(kind, draw, sentences)
        else:
            yield tool_call(f"call-{number}", kind, {"number": number})
            rows = [next(sentences) for _ in range(draw.randint(*_ROWS))]
            yield tool_result(f"call-{number}", _RENDERERS[kind](rows), tool_name=kind)


def _message(kind: str, draw: random.Random, sentences: Iterator[str]) -> pb.NewEvent:
    count = draw.randint(*_SENTENCES[kind])
    words = ". ".join(next(sentences).rstrip(".") for _ in range(count))
    if kind == "short":
        return user(words[: draw.randint(20, len(words))])
    return assistant(words)


def _as_json(rows: list[str]) -> str:
    return json.dumps([{"id": number, "note": row} for number, row in enumerate(rows)])


def _as_log(rows: list[str]) -> str:
    return "\n".join(
        f"2026-01-31 12:{number:02}:00 INFO worker {row}" for number, row in enumerate(rows)
    )


def _as_table(rows: list[str]) -> str:
    lines = (f'{number},"{row}",open' for number, row in enumerate(rows))
    return "id,note,state\n" + "\n".join(lines)


_RENDERERS = {"json": _as_json, "log": _as_log, "table": _as_table}
