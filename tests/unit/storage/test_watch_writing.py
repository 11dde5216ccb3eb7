"""Who leaves while an answer is being written is not written to any more."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from annals.storage.v1 import event_service_pb2 as pb
from annals_storage.handlers.watch import WatchHandler


class Writing:
    """A call whose answer is written when `done` is."""

    def __init__(self) -> None:
        self.done = asyncio.get_running_loop().create_future()

    async def write(self, _response: pb.WatchEventsResponse) -> None:
        await self.done


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancellation_that_comes_with_the_end_of_a_write_is_not_lost(turns: int) -> None:
    handler = WatchHandler(cast("Any", None), cast("Any", None))
    call = Writing()
    writing = asyncio.create_task(handler._write(call, pb.WatchEventsResponse()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    call.done.set_result(None)
    for _ in range(turns):
        await asyncio.sleep(0)
    is_asked = writing.cancel()
    await asyncio.wait({writing})

    assert writing.cancelled() == is_asked
