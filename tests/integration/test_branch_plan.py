"""Reading a branch costs what reading the trunk costs: rows and buffers, counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.support.branch_rows import NestedBranches
from tests.support.scratch import ScratchDatabase

from annals_storage.postgres.database import numbered, sql

DEPTH = 20
PAGE = 50


@dataclass(frozen=True, slots=True)
class Cost:
    """What a page read: events, and blocks of any table or index."""

    seqs: tuple[int, ...]
    events: int
    blocks: int


class Reads:
    """The lists of one conversation, planned as the service has them planned."""

    def __init__(self, url: str, rows: NestedBranches) -> None:
        self._rows = rows
        self._connection = psycopg.connect(
            url,
            cursor_factory=psycopg.ClientCursor,
            options="-c plan_cache_mode=force_generic_plan -c jit=off",
        )
        self._connection.execute(
            "SELECT set_config('annals.tenant_id', %s, false)", [str(rows.tenant_id)]
        )
        for name in ("list_events", "list_events_descending"):
            self._connection.execute(f"PREPARE {name} AS {numbered(sql(name))[0]}")

    def close(self) -> None:
        self._connection.close()

    def cost(self, name: str, branch: int, **bounds: int) -> Cost:
        """Read a page twice: what it holds, and what it takes when everything is cached."""
        _, names = numbered(sql(name))
        values = {**self._params(branch), **bounds}
        execute = f"EXECUTE {name}({', '.join(['%s'] * len(names))})"
        given = [values[one] for one in names]
        found = self._connection.execute(execute, given)
        place = [column.name for column in found.description or ()].index("seq")
        seqs = tuple(row[place] for row in found.fetchall())
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execute}"
        answer = self._connection.execute(explain, given).fetchone()
        assert answer is not None
        plan = answer[0] if isinstance(answer[0], list) else json.loads(answer[0])
        return Cost(seqs, _events_read(plan[0]["Plan"]), plan[0]["Plan"]["Shared Hit Blocks"])

    def _params(self, branch: int) -> dict[str, Any]:
        return {
            "tenant_id": self._rows.tenant_id,
            "conversation_id": self._rows.conversation_id,
            "branch": branch,
            "after_seq": 0,
            "before_seq": 2**63 - 1,
            "start_time": None,
            "end_time": None,
            "types": None,
            "roles": None,
            "tool_names": None,
            "show_deleted": False,
            "limit": PAGE,
            "max_bytes": 2**24,
        }


def _events_read(node: dict[str, Any]) -> int:
    """Rows that scans of events gave and threw away, over all loops."""
    own = 0
    if node.get("Relation Name") == "events":
        dropped = node.get("Rows Removed by Filter", 0)
        own = round((node["Actual Rows"] + dropped) * node["Actual Loops"])
    return own + sum(_events_read(child) for child in node.get("Plans", ()))


def reads_of(scratch: ScratchDatabase, **shape: int) -> Iterator[Reads]:
    rows = NestedBranches(uuid4(), uuid4(), branches=DEPTH + 1, **shape)
    rows.write(scratch.admin_url)
    reads = Reads(scratch.app_url, rows)
    yield reads
    reads.close()


@pytest.fixture
def wide(scratch: ScratchDatabase) -> Iterator[Reads]:
    """21,000 events: 20 levels, each of which leaves 600 of 1,000 events behind."""
    yield from reads_of(scratch, each=1_000, kept=400)


@pytest.fixture
def narrow(scratch: ScratchDatabase) -> Iterator[Reads]:
    """10,500 events: 20 levels, each of which keeps 15 of 500 events: a page spans several."""
    yield from reads_of(scratch, each=500, kept=15)


LISTS = pytest.mark.parametrize("name", ["list_events", "list_events_descending"])


class TestWideParts:
    @LISTS
    @pytest.mark.parametrize("place", ["outer", "across"])
    def test_a_deep_branch_costs_at_most_twice_the_trunk(
        self, wide: Reads, name: str, place: str
    ) -> None:
        """At the end of the view, and where a page lies across a point of departure."""
        bounds = {"list_events": {"after_seq": 19_380}, "list_events_descending":
                  {"before_seq": 20_020}}[name] if place == "across" else {}  # fmt: skip
        trunk = wide.cost(name, 1)

        deep = wide.cost(name, DEPTH + 1, **bounds)

        assert len(deep.seqs) == len(trunk.seqs) == PAGE
        assert trunk.events <= PAGE + 1
        assert deep.events <= 2 * trunk.events
        assert deep.blocks <= 2 * trunk.blocks

    def test_the_last_events_are_the_own_ones(self, wide: Reads) -> None:
        deep = wide.cost("list_events_descending", DEPTH + 1)

        assert deep.seqs == tuple(range(21_000, 20_950, -1))


class TestNarrowParts:
    @LISTS
    def test_a_page_reads_no_more_parts_than_it_spans(self, narrow: Reads, name: str) -> None:
        """Every part begins with a descent of the index: four blocks more, at most."""
        bounds = {"before_seq": 10_010} if name == "list_events_descending" else {}
        trunk = narrow.cost(name, 1)

        deep = narrow.cost(name, DEPTH + 1, **bounds)

        spanned = len({(seq - 1) // 500 for seq in deep.seqs})
        assert spanned == 4
        assert deep.events <= 2 * trunk.events
        assert deep.blocks <= trunk.blocks + 6 * spanned

    def test_the_order_holds_across_parts(self, narrow: Reads) -> None:
        deep = narrow.cost("list_events", DEPTH + 1)

        expected = [seq for level in range(4) for seq in range(level * 500 + 1, level * 500 + 16)]
        assert deep.seqs == tuple(expected[:PAGE])
