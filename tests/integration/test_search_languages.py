"""One tenant that speaks many languages, found by its words."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.appending import append
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.waiting import eventually

from annals.storage.v1 import search_service_pb2 as pb
from annals_client import user

SAID = [
    "The migrations were running all night long.",
    "Wir haben gestern zwei alte Häuser verkauft.",
    "Nous avons mangé des pommes au marché.",
    "Los niños cantaban canciones en la playa.",
    "As crianças compraram sapatos novos no mercado.",
    "我昨天在上海买了一台新电脑",
    "昨日は友達と新宿で寿司を食べました",
    "The talk about 機械学習 was postponed 🎉",
]


@pytest.fixture(scope="module")
async def spoken(storage: RunningStorage) -> AsyncIterator[Tenant]:
    """A tenant in whose conversation all of this was said."""
    async with fresh_tenant(storage) as tenant:
        await append(tenant.raw, "", *[user(text) for text in SAID])
        await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)
        yield tenant


@pytest.mark.parametrize(
    ("query", "language", "expected"),
    [
        ("migration run", "en", 0),
        ("welches Haus", "de-AT", 1),
        ("manger une pomme", "fr", 2),
        ("canción de un niño", "es-MX", 3),
        ("comprar sapato", "pt-BR", 4),
        ("电脑", "zh-Hans", 5),
        ("寿司を食べる", "ja", 6),
        ("機械学習", "ja", 7),
        ("talks", "en", 7),
    ],
)
async def test_another_form_of_a_word_finds_what_was_said(
    spoken: Tenant, query: str, language: str, expected: int
) -> None:
    for asked_in in ("", language):
        request = pb.SearchEventsRequest(
            query=query, mode=pb.SEARCH_MODE_LEXICAL, language=asked_in
        )
        found = await spoken.raw.call("SearchEvents", request)
        assert found.hits[0].event.message.content == SAID[expected], asked_in


@pytest.mark.parametrize(
    "query",
    ["what is the", "und der", "et les", "los que con", "para os", "这是我们的", "これはそれです"],
)
async def test_stop_words_alone_find_nothing(spoken: Tenant, query: str) -> None:
    request = pb.SearchEventsRequest(query=query, mode=pb.SEARCH_MODE_LEXICAL)

    found = await spoken.raw.call("SearchEvents", request)

    assert list(found.hits) == []
