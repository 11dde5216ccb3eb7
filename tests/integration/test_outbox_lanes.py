"""Which writes somebody waits for, and which are bulk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from tests.support.appending import append, ids
from tests.support.branching import revert
from tests.support.changing import edit
from tests.support.memories import store
from tests.support.scratch import run
from tests.support.storage import Tenant
from tests.support.transfers import exported, imported, remove

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as pb
from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.indexing import Priority

_HOLD_BACK = """
CREATE FUNCTION public.hold_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.available_at := 'infinity'; RETURN NEW; END $$;
CREATE TRIGGER hold_back BEFORE INSERT OR UPDATE ON annals.outbox
  FOR EACH ROW EXECUTE FUNCTION public.hold_back();
"""
_LANES = "SELECT priority FROM annals.outbox WHERE key = ANY(%s::uuid[])"


@pytest.fixture(scope="module", autouse=True)
def held_back(own_postgres: LocalPostgres) -> None:
    """What enters the outbox stays there."""
    run(own_postgres.admin_url, _HOLD_BACK)


async def lanes(postgres: LocalPostgres, keys: Iterable[str]) -> set[Priority]:
    rows = await asyncio.to_thread(run, postgres.admin_url, _LANES, [list(keys)])
    return {Priority(row["priority"]) for row in rows}


async def streamed(tenant: Tenant, room: str) -> list[str]:
    """Ids of what was appended as a stream."""
    request = pb.AppendEventsRequest(conversation_id=room, events=[user("in bulk")])
    await tenant.raw.append_one(pb.StreamAppendEventsRequest(append=request))
    return [event.event_id async for event in tenant.client.events.list(room)][-1:]


async def test_calls_are_interactive(own_tenant: Tenant, own_postgres: LocalPostgres) -> None:
    stored = await append(own_tenant.raw, "", user("one"), user("two"))
    memory = await store(own_tenant, "likes tea", conversation_id=stored.conversation_id)

    keys = [*ids(stored), memory.memory.memory_id]

    assert await lanes(own_postgres, keys) == {Priority.INTERACTIVE}


async def test_streams_copies_and_imports_are_bulk(
    own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    room = (await append(own_tenant.raw, "", user("one"))).conversation_id
    await store(own_tenant, "likes tea", conversation_id=room)
    keys = await streamed(own_tenant, room)
    fork = await own_tenant.raw.call(
        "ForkConversation", conversation_pb.ForkConversationRequest(conversation_id=room)
    )
    copy = fork.conversation.conversation_id
    keys += [event.event_id async for event in own_tenant.client.events.list(copy)]
    copied = await lanes(own_postgres, keys)
    written = await exported(own_tenant, copy)
    await asyncio.to_thread(remove, own_postgres, own_tenant.tenant_id, copy)
    emptied = await lanes(own_postgres, keys[1:])
    await imported(own_tenant, written)

    assert (copied, emptied) == ({Priority.BULK}, set())
    assert len(keys) == 3
    assert await lanes(own_postgres, keys) == {Priority.BULK}


async def test_what_waits_as_bulk_and_is_written_by_a_call_is_raised(
    own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    room = (await append(own_tenant.raw, "", user("one"))).conversation_id
    keys = await streamed(own_tenant, room)
    before = await lanes(own_postgres, keys)

    await edit(own_tenant.raw, keys[0], user("in bulk, edited"))

    assert before == {Priority.BULK}
    assert await lanes(own_postgres, keys) == {Priority.INTERACTIVE}


async def test_what_waits_for_a_call_is_not_lowered_by_bulk(
    own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    stored = await append(own_tenant.raw, "", user("one"), user("two"))

    # Leaves the view, and is mirrored anew with all that does.
    await revert(own_tenant.raw, stored.conversation_id, ids(stored)[0])

    assert await lanes(own_postgres, ids(stored)) == {Priority.INTERACTIVE}
