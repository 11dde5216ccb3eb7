"""The client for asyncio. `client` is its twin for threads."""

from __future__ import annotations

from typing import Self

from annals_client.aio_nouns import (
    AsyncAgents,
    AsyncAttachments,
    AsyncContext,
    AsyncConversations,
    AsyncErasure,
    AsyncEvents,
    AsyncFormats,
    AsyncHealth,
    AsyncIndex,
    AsyncJobs,
    AsyncKeys,
    AsyncMemories,
    AsyncProviderLogs,
    AsyncRelationships,
    AsyncRetention,
    AsyncSearch,
    AsyncSearchParameters,
    AsyncSigningKeys,
    AsyncSummaries,
    AsyncTenants,
    AsyncTopics,
    AsyncUsage,
)
from annals_client.aio_transport import AsyncTransport
from annals_client.config import (
    DEFAULT_TIMEOUT_S,
    Endpoints,
    EndUser,
    Secret,
    Tls,
    from_environment,
)
from annals_client.retry import RetryPolicy
from annals_client.session import Session


class AsyncAnnalsClient:
    """Both services, for one event loop. Create and close it inside that loop.

    `storage` and `context` are `host:port` or gRPC targets, `timeout` is in seconds and
    covers all attempts of a call. Each method takes a `timeout` of its own. `session_id`,
    `user_id` or a signed `user_token` name the end user that calls with `api_key` are for.
    """

    def __init__(
        self,
        storage: str,
        context: str = "",
        *,
        api_key: str = "",
        admin_key: str = "",
        session_id: str = "",
        user_id: str = "",
        user_token: str = "",
        tls: Tls | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        retries: RetryPolicy | None = None,
    ) -> None:
        end_user = EndUser(session_id, user_id, Secret(user_token))
        where = Endpoints(storage, context, Secret(api_key), Secret(admin_key), tls, end_user)
        self._session = Session(where, timeout_s=timeout, policy=retries or RetryPolicy())
        self._transport = AsyncTransport(self._session)
        self.tenants = AsyncTenants(self._transport)
        self.agents = AsyncAgents(self._transport)
        self.search_parameters = AsyncSearchParameters(self._transport)
        self.keys = AsyncKeys(self._transport)
        self.conversations = AsyncConversations(self._transport)
        self.events = AsyncEvents(self._transport)
        self.signing_keys = AsyncSigningKeys(self._transport)
        self.memories = AsyncMemories(self._transport)
        self.relationships = AsyncRelationships(self._transport)
        self.attachments = AsyncAttachments(self._transport)
        self.usage = AsyncUsage(self._transport)
        self.provider_logs = AsyncProviderLogs(self._transport)
        self.erasure = AsyncErasure(self._transport)
        self.retention = AsyncRetention(self._transport)
        self.search = AsyncSearch(self._transport)
        self.index = AsyncIndex(self._transport)
        self.jobs = AsyncJobs(self._transport)
        self.context = AsyncContext(self._transport)
        self.summaries = AsyncSummaries(self._transport)
        self.topics = AsyncTopics(self._transport)
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
            session_id=where.end_user.session_id,
            user_id=where.end_user.user_id,
            user_token=where.end_user.token.value,
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
