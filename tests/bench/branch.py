"""`python -m tests.bench.branch`: reading a deep branch beside reading a trunk of that length.

One conversation is reverted again and again: each branch departs a tenth before the end of the
one before. Another conversation has as many events on its trunk. Pages of both are read in turns:
the last 50, the first 50, and 50 in the middle. The plan of each page of the branch, as
PostgreSQL ran it, goes to build/bench/branch-plan.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import click
import grpc
import psycopg
from psycopg.rows import tuple_row
from tests.bench.harness import RESULTS_DIR, Report, percentile, progress
from tests.bench.rows import add_events, conversations, event_at, settle
from tests.bench.stack import Account, Stack, database_only, serving

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import event_service_pb2_grpc as stubs
from annals_storage.domain.events import EventQuery
from annals_storage.postgres.database import numbered, sql
from annals_storage.postgres.events import _params

PAGE_EVENTS = 50
WARM_UP_READS = 10
ROUNDS = 5
PAGES = ("last", "first", "middle")
TARGET = "<= 1.2"
_SESSION = "SET plan_cache_mode = force_generic_plan; SET jit = off; SET timezone = 'UTC'"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of events to read: a branch or a trunk."""

    conversation_id: str
    branch: int
    last_seq: int

    def request(self, page: str) -> pb.ListEventsRequest:
        """Return the request of one kind of page."""
        request = pb.ListEventsRequest(
            conversation_id=self.conversation_id, branch=self.branch, page_size=PAGE_EVENTS
        )
        if page == "last":
            request.order = pb.SORT_ORDER_DESCENDING
        if page == "middle":
            request.after_seq = self.last_seq // 2
        return request


@dataclass(slots=True)
class Reads:
    """Milliseconds of reads of one page of both lines, a list per round."""

    branch: list[list[float]] = field(default_factory=list)
    trunk: list[list[float]] = field(default_factory=list)

    def ratios(self) -> list[float]:
        """Return branch ÷ trunk, p50 of each round."""
        pairs = zip(self.branch, self.trunk, strict=True)
        return [percentile(ours, 50) / percentile(bare, 50) for ours, bare in pairs]


@click.command()
@click.option("--events", default=100_000, show_default=True, help="Of each conversation.")
@click.option("--depth", default=20, show_default=True, help="Of the branch.")
@click.option("--reads", default=100, show_default=True, help="Of each page, in each round.")
def main(events: int, depth: int, reads: int) -> None:
    """Measure the last, the first and a middle page of a deep branch and of a trunk."""
    report = Report("branch", {"events": events, "depth": depth, "reads": reads, "rounds": ROUNDS})
    with database_only() as stack:
        report.server_versions = stack.server_versions()
        with serving(stack), grpc.insecure_channel(stack.storage) as channel:
            account = stack.create_tenant("bench branch")
            events_stub = stubs.EventServiceStub(channel)
            list_page = _caller(events_stub, account)
            deep, trunk = _lines(stack, account, events_stub, events, depth)
            settle(stack)
            measured = _measure(list_page, deep, trunk, reads)
        plans = {page: _plan(stack, account, deep.request(page)) for page in PAGES}
    _add(measured, report)
    _write_plans(plans)
    report.write()


ListPage = Callable[[pb.ListEventsRequest], pb.ListEventsResponse]


def _metadata(account: Account) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {account.api_key}"),)


def _caller(stub: Any, account: Account) -> ListPage:
    metadata = _metadata(account)

    def list_page(request: pb.ListEventsRequest) -> pb.ListEventsResponse:
        answer: pb.ListEventsResponse = stub.ListEvents(request, metadata=metadata, timeout=30)
        if len(answer.events) != PAGE_EVENTS:
            raise RuntimeError(f"{len(answer.events)} events in a page of {PAGE_EVENTS}")
        return answer

    return list_page


def _lines(stack: Stack, account: Account, stub: Any, events: int, depth: int) -> tuple[Line, Line]:
    deep_id, trunk_id = conversations(stack, account, [0, events])
    own = events // (depth + 1)
    add_events(stack, deep_id, own)
    for level in range(1, depth + 1):
        request = pb.RevertToEventRequest(
            conversation_id=deep_id, event_id=event_at(stack, deep_id, level * own - own // 10)
        )
        opened = stub.RevertToEvent(request, metadata=_metadata(account), timeout=60)
        add_events(stack, deep_id, own, branch=opened.branch.branch)
    return Line(deep_id, depth + 1, own * (depth + 1)), Line(trunk_id, 1, events)


def _measure(list_page: ListPage, deep: Line, trunk: Line, reads: int) -> dict[str, Reads]:
    measured = {page: Reads() for page in PAGES}
    for line in (deep, trunk):
        for page in PAGES:
            _read(list_page, line.request(page), WARM_UP_READS)
    with progress() as shown:
        for _ in shown.track(range(ROUNDS), description="pages"):
            for page, kept in measured.items():
                ours, bare = _in_turns(list_page, deep.request(page), trunk.request(page), reads)
                kept.branch.append(ours)
                kept.trunk.append(bare)
    return measured


def _in_turns(
    list_page: ListPage, deep: pb.ListEventsRequest, trunk: pb.ListEventsRequest, reads: int
) -> tuple[list[float], list[float]]:
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(reads):
        ours += _read(list_page, deep, 1)
        bare += _read(list_page, trunk, 1)
    return ours, bare


def _read(list_page: ListPage, request: pb.ListEventsRequest, times: int) -> list[float]:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        list_page(request)
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def _add(measured: dict[str, Reads], report: Report) -> None:
    for page, reads in measured.items():
        name = f"branch_{page}_{PAGE_EVENTS}"
        report.add_runs(f"{name}_vs_trunk", reads.ratios(), "ratio", TARGET)
        for line, rounds in (("branch", reads.branch), ("trunk", reads.trunk)):
            p50 = [percentile(each, 50) for each in rounds]
            report.add_runs(f"{line}_{page}_{PAGE_EVENTS}_p50", p50, "ms")


def _plan(stack: Stack, account: Account, request: pb.ListEventsRequest) -> Any:
    """Return how PostgreSQL runs the page, as the service's role and with its settings."""
    query = EventQuery(
        UUID(request.conversation_id),
        branch=request.branch,
        after_seq=request.after_seq,
        descending=request.order == pb.SORT_ORDER_DESCENDING,
        limit=request.page_size,
    )
    name = "list_events_descending" if query.descending else "list_events"
    text, names = numbered(sql(name))
    values = _params(account.tenant_id, query)
    places = ", ".join(["%s"] * len(names))
    with psycopg.connect(stack.postgres.app_url, cursor_factory=psycopg.ClientCursor) as opened:
        opened.execute(_SESSION)
        opened.execute("SELECT set_config('annals.tenant_id', %s, true)", [str(account.tenant_id)])
        opened.execute(f"PREPARE page AS {text}")
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page ({places})"
        cursor = opened.cursor(row_factory=tuple_row)
        row = cursor.execute(explain, [values[name] for name in names]).fetchone()
    return row[0] if row else None


def _write_plans(plans: dict[str, Any]) -> None:
    RESULTS_DIR.mkdir(parents=True, exist_ok=True)
    written = json.dumps(plans, indent=1, ensure_ascii=False)
    (RESULTS_DIR / "branch-plan.json").write_text(written + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
