"""Asks the sample questions and prints what a model would see."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from dataclasses import dataclass

import click

from annals_client import AsyncAnnalsClient
from annals_local.errors import LocalError
from annals_local.sample import LoadedSample, load_sample
from annals_local.supervisor import Serving

INDEX_TIMEOUT_S = 60
POLL_SECONDS = 0.05
CALL_TIMEOUT_S = 30
RULE = "─" * 88


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks, and the budget of its context in tokens."""

    text: str
    budget_tokens: int


QUESTIONS = (
    Question("What caused the double bookings on the evening sailing in March?", 1500),
    Question("Which coupling did we order for the Solan's gearbox, and what did it cost?", 1500),
    Question("Why did the backfill stop in the night, and which rule came of it?", 2000),
)


async def ingest(serving: Serving) -> LoadedSample:
    """Store the sample, wait until it can be searched, and say how much of it was new."""
    identity = serving.identity
    async with AsyncAnnalsClient(serving.addresses.storage, api_key=identity.api_key) as client:
        began_s = time.monotonic()
        loaded = await load_sample(client, identity)
        stored_s = time.monotonic() - began_s
        async with asyncio.timeout(INDEX_TIMEOUT_S):
            await indexed(client, loaded.conversation_id)
    new = loaded.events - loaded.replayed_events
    click.echo(
        f"sample: {loaded.events} events, {new} of them new, in {loaded.conversation_id}; "
        f"stored after {stored_s:.1f} s, searchable after {time.monotonic() - began_s:.1f} s"
    )
    return loaded


async def indexed(client: AsyncAnnalsClient, conversation_id: str) -> None:
    """Wait until all of a conversation can be searched."""
    # Another process works on it; there is nothing here to be woken by.
    while (await client.index.status(conversation_id=conversation_id)).pending_count:  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECONDS)


async def ask(serving: Serving, conversation_id: str, question: Question) -> None:
    """Print the context that `annals context` prepares. Raises LocalError when it fails."""
    command = ["context", conversation_id, "--message", question.text]
    command += ["--budget", str(question.budget_tokens), "--format", "text"]
    click.echo(f"\n{RULE}\n$ annals {shlex.join(command)}\n{RULE}")
    await _annals(serving, command)


def explain(serving: Serving, conversation_id: str = "CONVERSATION_ID") -> None:
    """Say where the services listen and what to try."""
    where = serving.addresses
    click.echo(
        f"\nstorage  {where.storage}   metrics http://{where.storage_metrics}/metrics\n"
        f"context  {where.context}   metrics http://{where.context_metrics}/metrics\n"
        f"keys     {serving.endpoints_path}\n\n"
        "Try, in another terminal:\n"
        "  annals status\n"
        f'  annals search "gearbox coupling" --conversation {conversation_id}\n'
        f'  annals context {conversation_id} "Who bakes the plum cake?" --budget 2000\n'
        "  annals import chats.json\n\n"
        "Ctrl-C stops."
    )


async def _annals(serving: Serving, command: list[str]) -> None:
    options = ["--endpoints", str(serving.endpoints_path), "--timeout", str(CALL_TIMEOUT_S)]
    sys.stdout.flush()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "annals_client", *options, *command
    )
    try:
        status = await process.wait()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if status:
        raise LocalError(f"`annals {command[0]}` ended with status {status}")
