"""`python -m tests.bench.context`: contexts of short and long conversations, and counting tokens.

Contexts are timed beyond the query embedding: a search leaves the query's vector in the cache
first. Conversations take turns, query by query, so that all see the machine in the same state;
then once more while messages are written to other conversations and mirrored. What the contexts
are made of is written straight into the tables and the engine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice

import click
import uvloop
from tests.bench.harness import Report, progress
from tests.bench.points import add_chunks, add_points, open_edge, pool_of
from tests.bench.raw_search import Timings
from tests.bench.rows import conversations, settle
from tests.bench.stack import Account, Stack, database_only, serving
from tests.bench.texts import messages, questions

from annals_client import AnnalsClient, user
from annals_storage.embedding.loading import load_embedder

BUDGET_TOKENS = 2_000
SMALL, MEDIUM = 1_000, 10_000
WARM_UP_QUERIES = 20
WRITERS = 8
WRITER_PAUSE_S = 0.25
"""After each message of a writer: 8 of them write some 30 messages a second."""
COUNTED_TOKENS = 100_000
MESSAGES_TO_COUNT = 3_900
COUNTS = 20
COUNTED_MODEL = "gpt-4o"


@click.command()
@click.option("--events", default=100_000, show_default=True, help="Of the longest conversation.")
@click.option("--queries", default=200, show_default=True, help="Timed queries.")
def main(events: int, queries: int) -> None:
    """Measure contexts alone and beside writers, and CountTokens."""
    settings = {"events": events, "queries": queries, "budget": BUDGET_TOKENS, "writers": WRITERS}
    report = Report("context", settings)
    with database_only() as stack:
        report.server_versions = stack.server_versions()
        with serving(stack):
            account = stack.create_tenant("bench context")
            sizes = sorted({SMALL, min(MEDIUM, events), events})
            ids = dict(zip(sizes, conversations(stack, account, sizes), strict=True))
        uvloop.run(_mirror(stack, [*ids.values()]))
        settle(stack)
        with serving(stack), stack.client(account.api_key) as client:
            asked = questions(2 * (WARM_UP_QUERIES + queries))
            _measure(client, ids, asked, queries, report)
            with _writing(stack, account) as written:
                _measure(client, ids, asked, queries, report, prefix="writing_")
            report.note(f"{len(written)} messages were written while contexts were prepared")
            _count_tokens(client, report)
    report.write()


async def _mirror(stack: Stack, conversation_ids: Sequence[str]) -> None:
    embedder = await load_embedder(data_dir=stack.data_dir, threads=2)
    pool = await pool_of(embedder)
    add_chunks(stack, pool, conversation_ids)
    async with open_edge(stack, embedder.dimensions) as index:
        async for _ in add_points(stack, index, pool, conversation_ids):
            pass
    embedder.close()


def _measure(
    client: AnnalsClient,
    ids: Mapping[int, str],
    asked: Iterator[str],
    queries: int,
    report: Report,
    prefix: str = "",
) -> None:
    _prepare_all(client, ids, list(islice(asked, WARM_UP_QUERIES)))
    timings = _prepare_all(client, ids, list(islice(asked, queries)))
    for size, timed in timings.items():
        targets = ("<= 25", "<= 50") if size == max(ids) else (None, None)
        for percent, target in zip((50, 99), targets, strict=True):
            name = f"{prefix}prepare_context_{size}_events_p{percent}"
            report.add(name, timed.p(percent), "ms", target)
    rounds = zip(timings[max(ids)].rounds(), timings[SMALL].rounds(), strict=True)
    growth = [long / short for long, short in rounds]
    name = f"{prefix}prepare_context_growth_from_{SMALL}_to_{max(ids)}"
    report.add_runs(name, growth, "ratio", "<= 1.5")


def _prepare_all(
    client: AnnalsClient, ids: Mapping[int, str], asked: Sequence[str]
) -> dict[int, Timings]:
    timings = {size: Timings() for size in ids}
    with progress() as shown:
        for query in shown.track(asked, description="contexts"):
            client.search.events(query, conversation_ids=[ids[SMALL]], limit=1)
            for size, conversation_id in ids.items():
                prepare = partial(client.context.prepare, conversation_id, query=query)
                timings[size].time(partial(prepare, budget_tokens=BUDGET_TOKENS))
    return timings


@contextmanager
def _writing(stack: Stack, account: Account) -> Iterator[list[str]]:
    """Append to other conversations until the block ends; yield the messages written so far."""
    written: list[str] = []
    ends = threading.Event()
    threads = [
        threading.Thread(target=_write, args=(stack, account, seed, ends, written))
        for seed in range(WRITERS)
    ]
    with ExitStack() as ending:
        for thread in threads:
            thread.start()
            ending.callback(thread.join)
        ending.callback(ends.set)
        yield written


def _write(
    stack: Stack, account: Account, seed: int, ends: threading.Event, written: list[str]
) -> None:
    with stack.client(account.api_key) as client:
        conversation_id = client.conversations.create().conversation_id
        for text in messages(1_000_000, seed=seed):
            client.events.append(conversation_id, [user(text)])
            written.append(text)
            if ends.wait(WRITER_PAUSE_S):
                return


def _count_tokens(client: AnnalsClient, report: Report) -> None:
    """Count one text of a little more than `COUNTED_TOKENS` tokens."""
    text = "\n".join(messages(MESSAGES_TO_COUNT))
    count = partial(client.formats.count_tokens, text, model=COUNTED_MODEL)
    report.note(f"{count().total_tokens} tokens were counted")
    timed = Timings()
    for _ in range(COUNTS):
        timed.time(count)
    report.add(f"count_{COUNTED_TOKENS}_tokens_p50", timed.p(50), "ms", "<= 100")


if __name__ == "__main__":
    main()
