"""Searches that ask for what cannot be, or say nothing: an error that tells what to do, or no
hits; never INTERNAL and never slow.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import grpc
import pytest
from tests.support.appending import append
from tests.support.raw import failure
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.waiting import eventually

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import search_service_pb2 as pb
from annals_client import user

SAID = ["Ingrid keeps bees on the roof.", "The invoice was paid twice.", "日本語の文章です 🎉"]
DIMENSIONS = 384
UNIT = [1.0] + [0.0] * (DIMENSIONS - 1)
NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
async def asked(storage: RunningStorage) -> AsyncIterator[Tenant]:
    async with fresh_tenant(storage) as tenant:
        await append(tenant.raw, "", *[user(text) for text in SAID])
        await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)
        yield tenant


def filters(**fields: Any) -> pb.SearchFilter:
    """A filter; datetimes become timestamps."""
    made = pb.SearchFilter()
    for name in ("start_time", "end_time"):
        if name in fields:
            getattr(made, name).FromDatetime(fields.pop(name))
    made.MergeFrom(pb.SearchFilter(**fields))
    return made


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({}, "query", "required"),
        ({"query": " \n\t"}, "query", "must contain a word"),
        ({"query": "x", "vector": [1.0, 2.0]}, "vector", "must have 384 numbers"),
        ({"vector": [0.0] * DIMENSIONS}, "vector", "all zero"),
        ({"vector": [math.nan, *UNIT[1:]]}, "vector", "finite"),
        ({"vector": [-math.inf, *UNIT[1:]]}, "vector", "finite"),
        ({"query": " ", "vector": UNIT}, "query", "must contain a word"),
        ({"query": "x", "vector": UNIT, "mode": 3}, "vector", "LEXICAL"),
        ({"query": "x", "language": "tlh"}, "language", "en (english), de (german)"),
        ({"query": "x", "language": "de_DE"}, "language", "ja (japanese)"),
        ({"query": "x", "limit": -1}, "limit", "between 0 and 1,000"),
        ({"query": "x", "limit": 2**31 - 1}, "limit", "between 0 and 1,000"),
        ({"query": "x", "diversity": math.nan}, "diversity", "between 0 and 1"),
        ({"query": "x", "diversity": -0.1}, "diversity", "between 0 and 1"),
        ({"query": "x", "group_by": 4}, "group_by", "one of the values"),
        ({"query": "x", "min_score": math.nan}, "min_score", "between 0 and 1"),
        (
            {"query": "x", "filter": filters(start_time=NOON, end_time=NOON)},
            "filter.end_time",
            "must be after start_time",
        ),
        (
            {
                "query": "x",
                "filter": filters(start_time=NOON, end_time=NOON - timedelta(microseconds=1)),
            },
            "filter.end_time",
            "must be after start_time",
        ),
        (
            {"query": "x", "filter": filters(branch=1, all_branches=True)},
            "filter.all_branches",
            "must be false",
        ),
        ({"query": "x", "filter": filters(branch=1)}, "filter.branch", "exactly one"),
        (
            {
                "query": "x",
                "filter": filters(branch=1, conversation_ids=[str(uuid4()), str(uuid4())]),
            },
            "filter.branch",
            "exactly one",
        ),
        (
            {
                "query": "x",
                "filter": filters(roles=[res.ROLE_USER], types=[res.EVENT_TYPE_TOOL_CALL]),
            },
            "filter.roles",
            "MESSAGE",
        ),
        (
            {
                "query": "x",
                "filter": filters(tool_names=["grep"], types=[res.EVENT_TYPE_MESSAGE]),
            },
            "filter.tool_names",
            "TOOL_CALL",
        ),
        (
            {"query": "x", "filter": filters(tool_names=["grep"], roles=[res.ROLE_USER])},
            "filter.tool_names",
            "filter.roles",
        ),
    ],
)
async def test_is_refused_with_what_to_do(
    asked: Tenant, fields: dict[str, Any], field: str, says: str
) -> None:
    refused = await failure(asked.raw.call("SearchEvents", pb.SearchEventsRequest(**fields)))

    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))
    assert says in refused.message


async def test_a_query_of_a_megabyte_is_refused(asked: Tenant) -> None:
    request = pb.SearchEventsRequest(query="bees " * 200_000)

    refused = await failure(asked.raw.call("SearchEvents", request))

    assert (refused.reason, refused.fields) == ("LIMIT_EXCEEDED", ("query",))


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
@pytest.mark.parametrize(
    "query",
    [
        "a" * 32_768,
        "字" * 32_768,
        "a " * 16_384,
        "".join(chr(0x4E00 + n % 20_000) for n in range(32_768)),
        " ".join(f"w{n}" for n in range(4_681)),
        "the of and",
        "これはそれです",
        "🎉👩‍👩‍👧🏽",
        "\x01\x02\x1b[0m",
        "\u202e\ufffe\U0010ffff",
        "a\u0300" * 10_000,
    ],
    ids=lambda query: ascii(query[:12]),
)
async def test_odd_words_are_answered(asked: Tenant, mode: str, query: str) -> None:
    found = await asked.client.search.events(query, mode=mode, timeout=20)

    texts = {hit.event.message.content for hit in found.hits}
    if mode == "lexical":
        assert texts == ({SAID[2]} if "文" in query else set())
    else:
        assert texts <= set(SAID)


async def test_a_lone_surrogate_does_not_leave_the_client(asked: Tenant) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        await asked.client.search.events("half a \ud83d")


async def test_a_hundred_conversations_that_do_not_exist_hold_nothing(asked: Tenant) -> None:
    found = await asked.client.search.events(
        "bees", conversation_ids=[str(uuid4()) for _ in range(100)]
    )

    assert (list(found.hits), found.unindexed_count) == ([], 0)


class TestVectors:
    async def own_vector(self, storage: RunningStorage, text: str) -> list[float]:
        [vector] = await storage.adapters.embedder.embed([text])
        return [float(number) for number in vector]

    async def test_alone_find_by_meaning(self, asked: Tenant, storage: RunningStorage) -> None:
        vector = await self.own_vector(storage, "Who looks after insects that make honey?")
        # Its length says nothing.
        request = pb.SearchEventsRequest(vector=[7 * number for number in vector], explain=True)

        found = await asked.raw.call("SearchEvents", request)

        assert found.hits[0].event.message.content == SAID[0]
        assert {part.signal for hit in found.hits for part in hit.components} == {"dense"}
        asked_in_words = await asked.client.search.events(
            "Who looks after insects that make honey?", mode="dense"
        )
        assert [hit.score for hit in found.hits] == pytest.approx(
            [hit.score for hit in asked_in_words.hits], abs=1e-6
        )

    async def test_beside_words_are_the_meaning(
        self, asked: Tenant, storage: RunningStorage
    ) -> None:
        vector = await self.own_vector(storage, SAID[0])
        request = pb.SearchEventsRequest(query="invoice", vector=vector, explain=True)

        found = await asked.raw.call("SearchEvents", request)

        best = {
            part.signal: hit.event.message.content
            for hit in found.hits
            for part in hit.components
            if part.rank == 1
        }
        assert (best["dense"], best["bm25"]) == (SAID[0], SAID[1])

    async def test_are_logged_without_words(self, asked: Tenant) -> None:
        await asked.raw.call("SearchEvents", pb.SearchEventsRequest(vector=UNIT))

        logged = await eventually(
            lambda: asked.raw.call("ListSearchLog", pb.ListSearchLogRequest()),
            lambda page: any(not entry.query for entry in page.entries),
        )

        assert logged.entries
