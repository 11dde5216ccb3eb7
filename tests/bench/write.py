"""`python -m tests.bench.write`: durable appends beside the least they could cost.

Client, service and PostgreSQL are processes of their own. The bare ceiling (`ceiling`) and our
calls take turns in every round, so that what else the machine does falls on both.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import click
import grpc.aio
import psycopg
import uvloop
from tests.bench.ceiling import METHOD, create_table
from tests.bench.cpu import CpuMeter, spent
from tests.bench.growth import measure_growth
from tests.bench.harness import Report, progress
from tests.bench.load import Call, Load, drive
from tests.bench.profiling import profile_storage
from tests.bench.seeding import HAND_OUT, HOLD_BACK, administer
from tests.bench.stack import Account, Stack, database_only, free_port, process, serving

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import user

MESSAGE = (
    "Could you check whether the order from last Tuesday has left the warehouse, and if so, when "
    "it will arrive in Lisbon please?"
)
"""Of 124 characters, a usual length."""
CALLERS = 32
BATCH_EVENTS = 100
BATCH_CALLERS = 8
WARM_UP_SECONDS = 1.0
APPEND = "/annals.storage.v1.EventService/AppendEvents"
_SETTINGS = ("fsync", "synchronous_commit", "full_page_writes")


@dataclass(frozen=True, slots=True)
class Variant:
    """A kind of call to measure."""

    call: Call
    callers: int = CALLERS
    events_per_call: int = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement, and the CPU seconds each process used meanwhile."""

    load: Load
    cpu_seconds: Mapping[str, float]

    @property
    def calls_per_s(self) -> float:
        """Finished calls per second."""
        return self.load.calls_per_s

    def cpu_ms_per_call(self, process_name: str) -> float:
        """Return the CPU time of one process per call."""
        return self.cpu_seconds[process_name] * 1000 / len(self.load.latencies_ms)


Turns = Mapping[str, list[Turn]]


@click.command()
@click.option("--seconds", default=5.0, show_default=True, help="Of each measurement.")
@click.option("--rounds", default=3, show_default=True, help="Measurements of each kind.")
@click.option(
    "--profile",
    type=click.Choice(["unary", "unary_one_conversation", "batched"]),
    help="List what storage spends its time on under this load; no figures.",
)
def main(seconds: float, rounds: int, profile: str | None) -> None:
    """Measure unary and batched appends, with the indexer idle and at work."""
    with database_only() as stack:
        if profile:
            profile_storage(stack, lambda: uvloop.run(_drive_one(stack, profile, seconds)))
            return
        report = Report("write", {"seconds": seconds, "rounds": rounds, "callers": CALLERS})
        report.server_versions = stack.server_versions()
        report.settings |= {"batch_callers": BATCH_CALLERS, **_durability(stack)}
        with serving(stack), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_measure(stack, report, seconds, rounds))
            with _indexer_idle(stack):
                measure_growth(stack, report)
        report.write()


async def _measure(stack: Stack, report: Report, seconds: float, rounds: int) -> None:
    with _ceiling(stack) as (address, pid):
        roots = {"storage": stack.storage_pid, "postgresql": stack.postgres_pid(), "ceiling": pid}
        async with _variants(stack, address) as variants:
            take = partial(_take_turns, variants, CpuMeter(roots), seconds, rounds)
            with _indexer_idle(stack):
                turns = await take("indexer idle")
            busy = await take("indexer at work")
    _add_unary(turns, report)
    _add_batched(turns, report)
    _add_cpu(turns, report)
    _add_busy(busy, report)


@asynccontextmanager
async def _variants(stack: Stack, ceiling: str) -> AsyncIterator[dict[str, Variant]]:
    account = stack.create_tenant("bench write")
    async with (
        grpc.aio.insecure_channel(ceiling) as bare,
        grpc.aio.insecure_channel(stack.storage) as storage,
    ):
        await asyncio.gather(bare.channel_ready(), storage.channel_ready())
        yield {"ceiling": Variant(_store(bare)), **appends(stack, storage, account)}


def appends(stack: Stack, channel: grpc.aio.Channel, account: Account) -> dict[str, Variant]:
    """Return the kinds of appends, each to conversations made for it."""
    with stack.client(account.api_key) as client:

        def conversations(number: int) -> list[str]:
            return [client.conversations.create().conversation_id for _ in range(number)]

        own, shared = conversations(CALLERS), conversations(1) * CALLERS
        plain, batched = conversations(CALLERS), conversations(BATCH_CALLERS)
    metadata = (("authorization", f"Bearer {account.api_key}"),)
    append = channel.unary_unary(APPEND, bytes, bytes)

    def variant(ids: list[str], *, events: int, with_id: bool = True) -> Variant:
        requests = [_request(conversation_id, events) for conversation_id in ids]

        async def call(caller: int) -> object:
            request = requests[caller]
            request.request_id = str(uuid4()) if with_id else ""
            return await append(request.SerializeToString(), metadata=metadata)

        return Variant(call, len(ids), events)

    return {
        "unary": variant(own, events=1),
        "unary_without_request_id": variant(plain, events=1, with_id=False),
        "unary_one_conversation": variant(shared, events=1),
        "batched": variant(batched, events=BATCH_EVENTS),
    }


def _request(conversation_id: str, events: int) -> pb.AppendEventsRequest:
    return pb.AppendEventsRequest(conversation_id=conversation_id, events=[user(MESSAGE)] * events)


def _store(channel: grpc.aio.Channel) -> Call:
    store = channel.unary_unary(METHOD, bytes, bytes)
    request = _request(str(uuid4()), events=1).SerializeToString()

    async def call(_caller: int) -> object:
        return await store(request)

    return call


@contextmanager
def _ceiling(stack: Stack) -> Iterator[tuple[str, int]]:
    create_table(stack.postgres.admin_url)
    address = f"127.0.0.1:{free_port()}"
    env = {"BENCH_DATABASE_URL": stack.postgres.app_url, "BENCH_ADDRESS": address}
    with (
        (stack.log_dir / "ceiling.log").open("wb") as log,
        process([sys.executable, "-m", "tests.bench.ceiling"], env, log) as running,
    ):
        yield address, running.pid


@contextmanager
def _indexer_idle(stack: Stack) -> Iterator[None]:
    """Keep new events from the indexer, at no cost to those who append them."""
    administer(stack, HOLD_BACK)
    try:
        yield
    finally:
        administer(stack, HAND_OUT)


async def _take_turns(
    variants: Mapping[str, Variant], meter: CpuMeter, seconds: float, rounds: int, label: str
) -> Turns:
    turns: dict[str, list[Turn]] = {name: [] for name in variants}
    for variant in variants.values():
        await drive(variant.call, callers=variant.callers, seconds=WARM_UP_SECONDS)
    with progress() as shown:
        for _ in shown.track(range(rounds), description=label):
            for name, variant in variants.items():
                before = meter.read()
                load = await drive(variant.call, callers=variant.callers, seconds=seconds)
                turns[name].append(Turn(load, spent(before, meter.read())))
    return turns


def _add_unary(turns: Turns, report: Report) -> None:
    targets = {"unary": ">= 0.7"}
    for name in ("unary", "unary_without_request_id", "unary_one_conversation"):
        ratios = _ratios(turns[name], turns["ceiling"])
        report.add_runs(f"{_figure(name)}_vs_ceiling", ratios, "ratio", targets.get(name))
    for name in ("ceiling", "unary", "unary_one_conversation"):
        figure = "ceiling" if name == "ceiling" else _figure(name)
        report.add_runs(f"{figure}_rate", _rates(turns[name]), "calls/s")
        for percent in (50, 99):
            latencies = [turn.load.latency_ms(percent) for turn in turns[name]]
            report.add_runs(f"{figure}_p{percent}", latencies, "ms")


def _add_batched(turns: Turns, report: Report) -> None:
    rates = [rate * BATCH_EVENTS for rate in _rates(turns["batched"])]
    report.add_runs("batched_append_rate", rates, "events/s", ">= 12000")
    p50 = [turn.load.latency_ms(50) for turn in turns["batched"]]
    report.add_runs("batched_append_p50", p50, "ms")


def _add_cpu(turns: Turns, report: Report) -> None:
    for name, own in turns.items():
        service = "ceiling" if name == "ceiling" else "storage"
        for process_name in (service, "postgresql"):
            costs = [turn.cpu_ms_per_call(process_name) for turn in own]
            report.add_runs(f"{name}_cpu_in_{process_name}", costs, "ms/call")


def _add_busy(turns: Turns, report: Report) -> None:
    ratios = _ratios(turns["unary"], turns["ceiling"])
    report.add_runs("unary_append_vs_ceiling_while_indexing", ratios, "ratio")
    rates = [rate * BATCH_EVENTS for rate in _rates(turns["batched"])]
    report.add_runs("batched_append_rate_while_indexing", rates, "events/s")


def _figure(variant: str) -> str:
    return variant.replace("unary", "unary_append")


def _rates(turns: list[Turn]) -> list[float]:
    return [turn.calls_per_s for turn in turns]


def _ratios(turns: list[Turn], ceilings: list[Turn]) -> list[float]:
    pairs = zip(_rates(turns), _rates(ceilings), strict=True)
    return [ours / bare for ours, bare in pairs]


def _durability(stack: Stack) -> dict[str, str]:
    with psycopg.connect(stack.postgres.admin_url) as connection:
        shown = {name: connection.execute(f"SHOW {name}").fetchone() for name in _SETTINGS}
    return {name: str(row[0]) for name, row in shown.items() if row}


async def _drive_one(stack: Stack, name: str, seconds: float) -> None:
    account = stack.create_tenant("bench profile")
    with _indexer_idle(stack):
        async with grpc.aio.insecure_channel(stack.storage) as channel:
            variant = appends(stack, channel, account)[name]
            load = await drive(variant.call, callers=variant.callers, seconds=seconds)
    events_per_s = load.calls_per_s * variant.events_per_call
    click.echo(f"{name}, profiled: {events_per_s:.0f} events/s", err=True)


if __name__ == "__main__":
    main()
