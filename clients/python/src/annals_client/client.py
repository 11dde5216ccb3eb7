"""The client for threads. `aio_client` is its twin for asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import requests as _requests
from annals_client.binding import Noun, listing, unary
from annals_client.bulk import (
    BATCH_EVENTS,
    BULK_TIMEOUT_S,
    MAX_IN_FLIGHT,
    AppendProgress,
    Batcher,
    BulkOptions,
    batches_of,
)
from annals_client.config import DEFAULT_TIMEOUT_S, Endpoints, Secret, Tls, from_environment
from annals_client.retry import RetryPolicy
from annals_client.session import Session
from annals_client.transport import Transport


class Tenants(Noun):
    """Tenants; needs the admin key."""

    create = unary(_requests.tenants.create)
    get = unary(_requests.tenants.get)
    list = listing(_requests.tenants.list_all)


class Agents(Noun):
    """Agents of a tenant."""

    create = unary(_requests.agents.create)
    get = unary(_requests.agents.get)
    list = listing(_requests.agents.list_all)


class Keys(Noun):
    """API keys of a tenant."""

    caller = unary(_requests.keys.caller)
    create = unary(_requests.keys.create)
    list = listing(_requests.keys.list_all)
    revoke = unary(_requests.keys.revoke)


class Conversations(Noun):
    """Conversations."""

    create = unary(_requests.conversations.create)
    get = unary(_requests.conversations.get)
    list = listing(_requests.conversations.list_all)
    update = unary(_requests.conversations.update)
    end = unary(_requests.conversations.end)
    delete = unary(_requests.conversations.delete)
    restore = unary(_requests.conversations.restore)


class Events(Noun):
    """Events of conversations."""

    append = unary(_requests.events.append)
    get = unary(_requests.events.get)
    batch_get = unary(_requests.events.batch_get)
    list = listing(_requests.events.list_all)

    def stream_append(
        self,
        conversation_id: str,
        events: Iterable[pb.NewEvent],
        *,
        batch_size: int = BATCH_EVENTS,
        max_in_flight: int = MAX_IN_FLIGHT,
        timeout: float = BULK_TIMEOUT_S,
    ) -> Iterator[AppendProgress]:
        """Load events in bulk; yields what is durable after each batch.

        Reads `events` lazily and holds at most `max_in_flight` batches of 1–1,000 events.
        Events without an idempotency key get one. A broken stream is resumed after the last
        acknowledged batch. `timeout`: seconds without an acknowledgement. The load runs
        while the iterator is consumed.
        """
        options = BulkOptions(batch_size, max_in_flight, timeout)
        batches = batches_of(events, Batcher(conversation_id, batch_size))
        return self._transport.bulk_append(batches, options)


class Search(Noun):
    """Search."""

    events = unary(_requests.search.events)


class Index(Noun):
    """The mirror of embeddings."""

    status = unary(_requests.index.status)


class Context(Noun):
    """Prepared contexts."""

    prepare = unary(_requests.context.prepare)


class Formats(Noun):
    """Providers' formats and token counts."""

    render = unary(_requests.formats.render)
    parse = unary(_requests.formats.parse)
    count_tokens = unary(_requests.formats.count_tokens)


class Health(Noun):
    """Health of both services."""

    storage = unary(_requests.health.storage)
    context = unary(_requests.health.context)


class AnnalsClient:
    """Both services, for threads. Safe to share between threads; close it when done.

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
        self._transport = Transport(self._session)
        self.tenants = Tenants(self._transport)
        self.agents = Agents(self._transport)
        self.keys = Keys(self._transport)
        self.conversations = Conversations(self._transport)
        self.events = Events(self._transport)
        self.search = Search(self._transport)
        self.index = Index(self._transport)
        self.context = Context(self._transport)
        self.formats = Formats(self._transport)
        self.health = Health(self._transport)

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

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._session!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
