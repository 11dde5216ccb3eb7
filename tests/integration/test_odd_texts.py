"""Whatever a tool answers is stored, mirrored and found; none of it holds up what comes behind."""

from __future__ import annotations

from uuid import UUID

from tests.support.appending import append, empty_conversation, ids
from tests.support.indexing import EmbeddingWork, nothing_to_index
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals_client import tool_call, tool_result, user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.search import SearchScope
from annals_storage.indexer.chunker import MAX_CHUNKS

INDEXING_SECONDS = 120.0
MARK = "zebrafinch"
ODD = {
    "one letter": f"{MARK} " + "a" * 1_000_000,
    "one ideograph": f"{MARK} " + "字" * 20_000,
    "one sign": f"{MARK} " + "." * 50_000,
    "deep JSON": "[" * 100_000 + f'"{MARK}"' + "]" * 100_000,
    "broken JSON": '{"name": "' + MARK + '", "rows": [' + "[" * 100_000,
    "escapes": '{"name": "' + MARK + '", "odd": "\\ud800\\u0000\\udfff \\x"}',
    "families": f"{MARK} " + "👩‍👩‍👧‍👦" * 10_000,
    "right to left": f"\u202e{MARK} " + "שלום עולם \u200f" * 200,
    "an open quote": f'a,b,c\n{MARK},2,"3\n' + "4,5,6\n" * 1_000,
    "no letters": "\u200b\u00ad\n\t \x7f" * 1_000 + MARK,
    "blanks": f"{MARK}" + " \n" * 100_000,
}
BEHIND = "The quokka behind all that waits for nobody."


async def test_odd_results_are_found_and_the_queue_drains(tenant: Tenant) -> None:
    room = await empty_conversation(tenant)
    names = list(ODD)
    await append(tenant.raw, room, *[tool_call(name, "probe", {}) for name in names])
    results = [tool_result(name, ODD[name]) for name in names]
    await append(tenant.raw, room, *results, user(BEHIND))

    await drained(tenant)

    found = await tenant.client.search.events(MARK, mode="lexical", limit=50)
    assert {hit.event.tool_result.tool_call_id for hit in found.hits} == set(names)
    behind = await tenant.client.search.events("quokka", mode="lexical")
    assert [hit.event.message.content for hit in behind.hits] == [BEHIND]


async def test_an_endless_text_has_so_many_chunks_and_no_more(
    storage: RunningStorage, tenant: Tenant, postgres: LocalPostgres
) -> None:
    await nothing_to_index(postgres)
    room = await empty_conversation(tenant)

    with EmbeddingWork() as work:
        stored = await append(tenant.raw, room, user("字" * 340_000))
        await drained(tenant)

    [event_id] = ids(stored)
    scope = SearchScope(UUID(tenant.tenant_id), conversation_ids=(UUID(room),))
    assert await storage.adapters.vectors.count(scope) == MAX_CHUNKS
    assert work.embedded == 1, "the same stretch again and again"
    found = await tenant.client.search.events("字", mode="dense")
    assert [hit.event.event_id for hit in found.hits] == [event_id]


async def drained(tenant: Tenant) -> None:
    status = await eventually(
        tenant.client.index.status,
        lambda now: now.pending_count == 0,
        timeout_s=INDEXING_SECONDS,
    )
    assert status.parked_count == 0
    assert status.chunk_count == status.point_count
