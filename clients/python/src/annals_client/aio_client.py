"""The client for asyncio. `client` is its twin for threads."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Self

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import requests as _requests
from annals_client.aio_transport import AsyncTransport
from annals_client.binding import AsyncNoun, async_listing, async_unary
from annals_client.bulk import (
    BATCH_EVENTS,
    BULK_TIMEOUT_S,
    MAX_IN_FLIGHT,
    AppendProgress,
    Batcher,
    BulkOptions,
    batches_of_async,
)
from annals_client.config import DEFAULT_TIMEOUT_S, Endpoints, Secret, Tls, from_environment
from annals_client.retry import RetryPolicy
from annals_client.session import Session


class AsyncTenants(AsyncNoun):
    """Tenants; needs the admin key."""

    create = async_unary(_requests.tenants.create)
    get = async_unary(_requests.tenants.get)
    list = async_listing(_requests.tenants.list_all)


class AsyncAgents(AsyncNoun):
    """Agents of a tenant."""

    create = async_unary(_requests.agents.create)
    get = async_unary(_requests.agents.get)
    list = async_listing(_requests.agents.list_all)


class AsyncKeys(AsyncNoun):
    """API keys of a tenant."""

    caller = async_unary(_requests.keys.caller)
    create = async_unary(_requests.keys.create)
    list = async_listing(_requests.keys.list_all)
    revoke = async_unary(_requests.keys.revoke)


class AsyncConversations(AsyncNoun):
    """Conversations."""

    create = async_unary(_requests.conversations.create)
    get = async_unary(_requests.conversations.get)
    list = async_listing(_requests.conversations.list_all)
    update = async_unary(_requests.conversations.update)
    end = async_unary(_requests.conversations.end)
    delete = async_unary(_requests.conversations.delete)
    restore = async_unary(_requests.conversations.restore)


class AsyncEvents(AsyncNoun):
    """Events of conversations."""

    append = async_unary(_requests.events.append)
    get = async_unary(_requests.events.get)
    batch_get = async_unary(_requests.events.batch_get)
    list = async_listing(_requests.events.list_all)

    def stream_append(
        self,
        conversation_id: str,
        events: Iterable[pb.NewEvent] | AsyncIterable[pb.NewEvent],
        *,
        batch_size: int = BATCH_EVENTS,
        max_in_flight: int = MAX_IN_FLIGHT,
        timeout: float = BULK_TIMEOUT_S,
    ) -> AsyncIterator[AppendProgress]:
        """Load events in bulk; yields what is durable after each batch.

        Reads `events` lazily and holds at most `max_in_flight` batches of 1–1,000 events.
        Events without an idempotency key get one. A broken stream is resumed after the last
        acknowledged batch. `timeout`: seconds without an acknowledgement. The load runs
        while the iterator is consumed.
        """
        options = BulkOptions(batch_size, max_in_flight, timeout)
        batches = batches_of_async(events, Batcher(conversation_id, batch_size))
        return self._transport.bulk_append(batches, options)


class AsyncSearch(AsyncNoun):
    """Search."""

    events = async_unary(_requests.search.events)


class AsyncIndex(AsyncNoun):
    """The mirror of embeddings."""

    status = async_unary(_requests.index.status)


class AsyncContext(AsyncNoun):
    """Prepared contexts."""

    prepare = async_unary(_requests.context.prepare)


class AsyncFormats(AsyncNoun):
    """Providers' formats and token counts."""

    render = async_unary(_requests.formats.render)
    parse = async_unary(_requests.formats.parse)
    count_tokens = async_unary(_requests.formats.count_tokens)


class AsyncHealth(AsyncNoun):
    """Health of both services."""

    storage = async_unary(_requests.health.storage)
    context = async_unary(_requests.health.context)


class AsyncAnnalsClient:
    """Both services, for one event loop. Create and close it inside that loop.

    `storage` and `context` are `host:port` or gRPC targets, `timeout` is in seconds and
    covers all attempts of a call. Each method takes a `timeout` of its own.
    """

    def __init__(
        self,
        storage: str,
        context: str = "",
        *,
        api_key: str = "",
        admin_key: str = "",
        tls: Tls | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        retries: RetryPolicy | None = None,
    ) -> None:
        where = Endpoints(storage, context, Secret(api_key), Secret(admin_key), tls)
        self._session = Session(where, timeout_s=timeout, policy=retries or RetryPolicy())
        self._transport = AsyncTransport(self._session)
        self.tenants = AsyncTenants(self._transport)
        self.agents = AsyncAgents(self._transport)
        self.keys = AsyncKeys(self._transport)
        self.conversations = AsyncConversations(self._transport)
        self.events = AsyncEvents(self._transport)
        self.search = AsyncSearch(self._transport)
        self.index = AsyncIndex(self._transport)
        self.context = AsyncContext(self._transport)
        self.formats = AsyncFormats(self._transport)
        self.health = AsyncHealth(self._transport)

    @classmethod
    def from_environment(cls, *, timeout: float = DEFAULT_TIMEOUT_S) -> Self:
        """Connect where `ANNALS_*` or the nearest `build/local/endpoints.json` says."""
        return cls.at(from_environment(), timeout=timeout)

    @classmethod
    def at(cls, where: Endpoints, *, timeout: float = DEFAULT_TIMEOUT_S) -> Self:
        """Connect to `where`."""
        return cls(
            where.storage,
            where.context,
            api_key=where.api_key.value,
            admin_key=where.admin_key.value,
            tls=where.tls,
            timeout=timeout,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._session!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()
