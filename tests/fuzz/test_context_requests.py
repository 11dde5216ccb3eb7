"""Valid messages with senseless values to the context service: never INTERNAL, always a reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, seed
from hypothesis import strategies as st
from tests.fuzz.conftest import Fuzzed
from tests.fuzz.generated import KNOWN_IDS, PROFILE, SEED, check, messages
from tests.support.context import RunningContext
from tests.support.raw import Raw, path_of

from annals.context.v1 import context_service_pb2 as pb

METHODS = {
    method.name: method
    for service in pb.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
HANDLES = st.sampled_from(["#1", "#2", "#3", "#0", f"{KNOWN_IDS[0]}#1", "#", "x"])


@dataclass(frozen=True, slots=True)
class Site:
    """Where the messages go, and a view that is good there."""

    loop: asyncio.AbstractEventLoop
    raw: Raw
    view: str

    async def call(self, method: MethodDescriptor, request: Any) -> Any:
        sent = request.SerializeToString()
        answer = await self.raw.bytes_call(
            path_of(method), sent, timeout_s=10, metadata=self.raw.metadata()
        )
        return GetMessageClass(method.output_type).FromString(answer)


@pytest.fixture
async def site(fuzzed: Fuzzed, context: RunningContext) -> AsyncIterator[Site]:
    loop, tenant = fuzzed
    async with Raw(context.address, tenant.api_key) as raw:
        first = Site(loop, raw, "")
        wanted = pb.PrepareContextRequest(conversation_id=KNOWN_IDS[0], budget_tokens=100)
        prepared = await first.call(METHODS["PrepareContext"], wanted)
        yield Site(loop, raw, prepared.view)


@pytest.mark.parametrize("name", METHODS)
def test_no_message_breaks_a_method(site: Site, name: str) -> None:
    method = METHODS[name]

    @seed(SEED)
    @PROFILE
    @given(messages(method.input_type), st.lists(HANDLES, max_size=3), st.integers(0, 3))
    def run(request: Any, handles: list[str], kept: int) -> None:
        # Most views and handles are good ones, or nothing behind them would be reached.
        if kept and hasattr(request, "view"):
            request.view = site.view
        if kept and hasattr(request, "handles"):
            request.handles[:] = handles
        site.loop.run_until_complete(check(name, request, site.call(method, request)))

    run()
