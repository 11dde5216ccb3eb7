"""Many tenants of a thousand events each in one engine: each search is of another tenant's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import grpc
from tests.bench.harness import Report, progress
from tests.bench.raw_search import Compared, RawSearch
from tests.bench.rows import conversations
from tests.bench.stack import Account, Stack
from tests.bench.texts import questions

from annals.storage.v1 import search_service_pb2 as pb
from annals.storage.v1 import search_service_pb2_grpc as stubs
from annals_storage.domain.search import SearchScope

EVENTS = 1_000
WARM_UP_QUERIES = 20
SEED = 3


@dataclass(frozen=True, slots=True)
class Crowd:
    """Tenants and their one conversation each."""

    accounts: list[Account]
    conversation_ids: list[str]

    @classmethod
    def created(cls, stack: Stack, tenants: int) -> Crowd:
        """Create the tenants and write their events into the tables."""
        accounts, rooms = [], []
        with progress() as shown:
            for number in shown.track(range(tenants), description="tenants"):
                account = stack.create_tenant(f"bench crowd {number}")
                accounts.append(account)
                rooms += conversations(stack, account, [EVENTS])
        return cls(accounts, rooms)

    def measure(self, stack: Stack, raw: RawSearch, queries: int, report: Report) -> None:
        """Add what searches cost, each of all of a tenant's events."""
        asked = list(questions(WARM_UP_QUERIES + queries, seed=SEED))
        with grpc.insecure_channel(stack.storage) as channel:
            stub = stubs.SearchServiceStub(channel)
            turns = cycle(self.accounts)
            for account in self.accounts[: len(asked)]:
                # Keys are remembered for a while: looking one up is not part of a search.
                _search(stub, account, "warm up")
            self._ask(stub, raw, asked[:WARM_UP_QUERIES], turns)
            self._ask(stub, raw, asked[WARM_UP_QUERIES:], turns).add_to(report, "tenants_")

    def _ask(
        self, stub: Any, raw: RawSearch, asked: Sequence[str], turns: Iterator[Account]
    ) -> Compared:
        compared = Compared()
        with progress() as shown:
            for query in shown.track(asked, description="queries of tenants"):
                account = next(turns)
                raw.time(query, SearchScope(account.tenant_id), compared)
                compared.search.time(partial(_search, stub, account, query))
        return compared


def _search(stub: Any, account: Account, query: str) -> None:
    metadata = (("authorization", f"Bearer {account.api_key}"),)
    answer = stub.SearchEvents(pb.SearchEventsRequest(query=query), metadata=metadata, timeout=120)
    if not answer.hits:
        raise RuntimeError(f"nothing found of {account.tenant_id}")
