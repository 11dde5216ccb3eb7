"""The client for threads. `aio_client` is its twin for asyncio."""

from __future__ import annotations

from typing import Self

from annals_client.config import (
    DEFAULT_TIMEOUT_S,
    Endpoints,
    EndUser,
    Secret,
    Tls,
    from_environment,
)
from annals_client.nouns import (
    Agents,
    Attachments,
    Context,
    Conversations,
    Erasure,
    Events,
    Formats,
    Health,
    Index,
    Jobs,
    Keys,
    Memories,
    ProviderLogs,
    Relationships,
    Retention,
    Search,
    SearchParameters,
    SigningKeys,
    Summaries,
    Tenants,
    Topics,
    Usage,
)
from annals_client.retry import RetryPolicy
from annals_client.session import Session
from annals_client.transport import Transport


class AnnalsClient:
    """Both services, for threads. Safe to share between threads; close it when done.

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
        self._transport = Transport(self._session)
        self.tenants = Tenants(self._transport)
        self.agents = Agents(self._transport)
        self.search_parameters = SearchParameters(self._transport)
        self.keys = Keys(self._transport)
        self.conversations = Conversations(self._transport)
        self.events = Events(self._transport)
        self.signing_keys = SigningKeys(self._transport)
        self.memories = Memories(self._transport)
        self.relationships = Relationships(self._transport)
        self.attachments = Attachments(self._transport)
        self.usage = Usage(self._transport)
        self.provider_logs = ProviderLogs(self._transport)
        self.erasure = Erasure(self._transport)
        self.retention = Retention(self._transport)
        self.search = Search(self._transport)
        self.index = Index(self._transport)
        self.jobs = Jobs(self._transport)
        self.context = Context(self._transport)
        self.summaries = Summaries(self._transport)
        self.topics = Topics(self._transport)
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
            session_id=where.end_user.session_id,
            user_id=where.end_user.user_id,
            user_token=where.end_user.token.value,
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
