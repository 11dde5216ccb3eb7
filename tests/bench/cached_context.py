"""`python -m tests.bench.cached_context`: answers from the cache, and prefixes that stay.

A conversation is asked for the same contexts again and again, of the process that has them, and of
one that keeps nothing itself and takes each from storage. With DATA, a dialogue of LoCoMo then
grows turn by turn, and each context is compared with the one before it, which a provider that
caches prompts has read already.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from tests.bench.harness import Report, percentile
from tests.bench.stack import Stack, await_indexed, free_port, process, running_stack
from tests.bench.texts import messages, questions

from annals.context.v1 import context_service_pb2 as pb
from annals.context.v1 import resources_pb2 as res
from annals_client import AnnalsClient, RetryPolicy, assistant, user
from annals_client.values import enum_name

BUDGET_TOKENS = 2_000
REQUESTS = 5
"""Different contexts, asked for in turns."""
KEPT_TIMEOUT_S = 30.0
POLL_SECONDS = 0.02
PATIENT = RetryPolicy(max_attempts=1000)
FORMATS = ("text", "openai-chat")
TARGET = "<= 5"


@click.command()
@click.option("--events", default=1_000, show_default=True, help="Of the conversation.")
@click.option("--asks", default=300, show_default=True, help="Of each tier.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder with locomo/.")
@click.option("--turns", default=120, show_default=True, help="Of the growing dialogue.")
def main(events: int, asks: int, data: Path | None, turns: int) -> None:
    """Measure answers from the cache and what contexts share with those before them."""
    report = Report("cached_context", {"events": events, "asks": asks, "turns": turns})
    with running_stack() as stack:
        report.server_versions = stack.server_versions()
        key = stack.create_tenant("cached").api_key
        with stack.client(key) as client:
            conversation_id = _filled(client, events)
            cached_figures(client, conversation_id, report, asks=asks)
            with _forgetful(stack, key) as other:
                shared_figures(other, conversation_id, report, asks=asks)
            if data is not None:
                _prefix_figures(client, data, report, turns=turns)
    report.write()


def cached_figures(
    client: AnnalsClient, conversation_id: str, report: Report, *, asks: int
) -> None:
    """Add p50 and p99 of answers that the process has, in milliseconds."""
    anew = [_timed(client, conversation_id, query, {"none"}) for query in _queries()]
    report.add("assembled_context_p50", percentile(anew, 50), "ms")
    for query in _queries():
        _until_kept(client, conversation_id, query)
    bare = [_read(client, conversation_id) for _ in range(asks)]
    report.add("read_of_a_conversation_p50", percentile(bare, 50), "ms")
    found = _cached(client, conversation_id, asks, {"process"})
    report.add("cached_context_p50", percentile(found, 50), "ms", TARGET)
    report.add("cached_context_p99", percentile(found, 99), "ms")
    ratio = percentile(found, 50) / percentile(bare, 50)
    report.add("cached_context_vs_read_of_a_conversation", ratio, "ratio")


def shared_figures(
    client: AnnalsClient, conversation_id: str, report: Report, *, asks: int
) -> None:
    """Add p50 and p99 of answers that another process had put into storage."""
    found = _cached(client, conversation_id, asks, {"shared"})
    report.add("shared_context_p50", percentile(found, 50), "ms", TARGET)
    report.add("shared_context_p99", percentile(found, 99), "ms")


def _filled(client: AnnalsClient, events: int) -> str:
    said = [user(text) if n % 2 else assistant(text) for n, text in enumerate(messages(events))]
    conversation_id = str(client.events.append("", said[:500]).conversation_id)
    for start in range(500, events, 500):
        client.events.append(conversation_id, said[start : start + 500])
    await_indexed(client)
    return conversation_id


def _queries() -> list[str]:
    return list(questions(REQUESTS))


def _cached(client: AnnalsClient, conversation_id: str, asks: int, tiers: set[str]) -> list[float]:
    queries = _queries()
    return [_timed(client, conversation_id, queries[n % REQUESTS], tiers) for n in range(asks)]


def _read(client: AnnalsClient, conversation_id: str) -> float:
    started_s = time.perf_counter()
    client.conversations.get(conversation_id)
    return (time.perf_counter() - started_s) * 1_000


def _timed(client: AnnalsClient, conversation_id: str, query: str, tiers: set[str]) -> float:
    started_s = time.perf_counter()
    answer = client.context.prepare(conversation_id, budget_tokens=BUDGET_TOKENS, query=query)
    elapsed_ms = (time.perf_counter() - started_s) * 1_000
    if _tier(answer) not in tiers:
        raise RuntimeError(f"answered from {_tier(answer)}, not from {tiers}")
    return elapsed_ms


def _tier(answer: pb.PrepareContextResponse) -> str:
    name = pb.ContextCacheTier.Name(answer.cached)
    return name.removeprefix("CONTEXT_CACHE_TIER_").lower()


def _until_kept(client: AnnalsClient, conversation_id: str, query: str) -> None:
    deadline_s = time.monotonic() + KEPT_TIMEOUT_S
    while True:
        answer = client.context.prepare(conversation_id, budget_tokens=BUDGET_TOKENS, query=query)
        if _tier(answer) == "process":
            return
        if time.monotonic() > deadline_s:
            raise TimeoutError("a context is not kept")
        time.sleep(POLL_SECONDS)


@contextmanager
def _forgetful(stack: Stack, api_key: str) -> Iterator[AnnalsClient]:
    """A second context process, which forgets at once what it took from storage."""
    address = f"127.0.0.1:{free_port()}"
    env = {
        "ANNALS_CONTEXT_STORAGE_ADDRESS": stack.storage,
        "ANNALS_CONTEXT_SERVER__ADDRESS": address,
        "ANNALS_CONTEXT_CACHE__TTL_SECONDS": "0.000001",
    }
    command = [sys.executable, "-m", "annals_context", "serve"]
    with (
        process(command, env, subprocess.DEVNULL),
        AnnalsClient(stack.storage, address, api_key=api_key, timeout=60, retries=PATIENT) as it,
    ):
        deadline_s = time.monotonic() + KEPT_TIMEOUT_S
        while it.health.context() != "serving":
            if time.monotonic() > deadline_s:
                raise TimeoutError("the second context process does not serve")
            time.sleep(POLL_SECONDS)
        yield it


def _prefix_figures(client: AnnalsClient, data: Path, report: Report, *, turns: int) -> None:
    dialogue = json.loads((data / "locomo" / "locomo_dev.json").read_text())[0]["conversation"]
    said = _turns(dialogue)[:turns]
    for form in FORMATS:
        for strategy, shares in _grown(client, said, form).items():
            name = f"prefix_share_{form.replace('-', '_')}_{strategy}_p50"
            report.add(name, percentile(shares, 50), "ratio")


def _turns(dialogue: Mapping[str, Any]) -> list[str]:
    sessions = [dialogue[f"session_{n}"] for n in range(1, 40) if f"session_{n}" in dialogue]
    return [f"{turn['speaker']}: {turn['text']}" for session in sessions for turn in session]


def _grown(client: AnnalsClient, said: Sequence[str], form: str) -> dict[str, list[float]]:
    """Append turn by turn; return, by strategy, which part of each context was there before."""
    conversation_id, previous = "", ""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for number, text in enumerate(said):
        event = user(text) if number % 2 == 0 else assistant(text)
        conversation_id = str(client.events.append(conversation_id, event).conversation_id)
        if number % 2:
            continue
        answer = client.context.prepare(
            conversation_id,
            budget_tokens=BUDGET_TOKENS,
            payload_format=form,
            read_your_writes=True,
            previous_context_version=previous,
        )
        if previous:
            share = answer.shared_prefix_bytes / len(answer.payload.encode())
            shares[enum_name(res.Strategy, "STRATEGY_", answer.strategy)].append(share)
        previous = answer.context_version
    return dict(shares)


if __name__ == "__main__":
    main()
