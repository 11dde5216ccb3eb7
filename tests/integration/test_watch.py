"""WatchEvents: every event once, in order, whatever happens on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.appending import append, empty_conversation
from tests.support.storage import Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import user


class Watch:
    """One watch: what it has delivered, and where it stands."""

    def __init__(self, tenant: Tenant, **fields: Any) -> None:
        self.tenant, self.fields = tenant, fields
        self.events: list[Any] = []
        self.token = ""
        self._call: Any = None

    async def begin(self) -> Watch:
        request = pb.WatchEventsRequest(**self.fields, resume_token=self.token)
        self._call = self.tenant.raw.answers("WatchEvents", request, timeout_s=None)
        first = await asyncio.wait_for(self._call.read(), 10)
        self._take(first)
        return self

    async def until(self, count: int, *, timeout_s: float = 20) -> list[str]:
        async with asyncio.timeout(timeout_s):
            while len(self.events) < count:
                self._take(await self._call.read())
        return self.contents()

    async def read(self) -> Any:
        return await self._call.read()

    def stop(self) -> None:
        if self._call is not None:
            self._call.cancel()

    def contents(self) -> list[str]:
        return [event.message.content for event in self.events]

    def _take(self, answer: pb.WatchEventsResponse) -> None:
        self.events += answer.events
        self.token = answer.resume_token


@pytest.fixture
async def watches() -> Any:
    """Stops every watch at the end."""
    begun: list[Watch] = []
    yield begun
    for watch in begun:
        watch.stop()


async def begin(watches: list[Watch], tenant: Tenant, **fields: Any) -> Watch:
    watches.append(Watch(tenant, **fields))
    return await watches[-1].begin()


async def test_a_conversation_is_followed_from_now_on(tenant: Tenant, watches: Any) -> None:
    room = await empty_conversation(tenant)
    await append(tenant.raw, room, user("before"))
    watch = await begin(watches, tenant, conversation_id=room)
    assert (watch.events, bool(watch.token)) == ([], True)

    await append(tenant.raw, room, user("a"), user("b"))
    await append(tenant.raw, room, user("c"))

    assert await watch.until(3) == ["a", "b", "c"]
    assert [event.seq for event in watch.events] == [2, 3, 4]
