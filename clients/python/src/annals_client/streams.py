"""Streams as values: built once, run by either client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from annals.storage.v1 import event_service_pb2 as pb
from annals_client.calls import STORAGE, Credential
from annals_client.errors import AnnalsRpcError
from annals_client.retry import RetryPolicy, is_transient
from annals_client.stubs import Stubs

WATCH_TIMEOUT_S = 60.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Download:
    """A file that comes in parts. Tried again until its first part has come, then no more."""

    select: Callable[[Stubs], Any]
    request: Any
    pick: Callable[[Any], bytes]
    timeout_s: float | None
    safe: bool = True
    credential: Credential = Credential.API_KEY
    service: str = STORAGE

    @property
    def method(self) -> str:
        """Name of the method, such as "ExportConversation"."""
        return str(self.request.DESCRIPTOR.name).removesuffix("Request")


@dataclass(frozen=True, slots=True)
class Upload(Generic[T]):
    """A file that goes in parts. `requests` begins anew for each attempt."""

    select: Callable[[Stubs], Any]
    requests: Callable[[], Iterator[Any]]
    timeout_s: float | None
    safe: bool
    credential: Credential = Credential.API_KEY
    service: str = STORAGE
    method: str = "ImportConversations"


class Watch:
    """Where a watch is, and whether to go on after a failure.

    A token counts as reached when every event before it has been taken, so an event is never
    given twice, nor left out, by a watch that reconnects.
    """

    def __init__(
        self,
        request: pb.WatchEventsRequest,
        *,
        on_resume_token: Callable[[str], None] | None,
        timeout_s: float,
    ) -> None:
        self._request, self._timeout_s = request, timeout_s
        self._tell = on_resume_token
        self._failures = 0
        self._stalled_since_s: float | None = None

    @property
    def request(self) -> pb.WatchEventsRequest:
        """What to open the next stream with."""
        return self._request

    def reached(self, resume_token: str) -> None:
        """Note that everything before this token has been taken."""
        self._failures, self._stalled_since_s = 0, None
        if resume_token == self._request.resume_token:
            return
        resumed = pb.WatchEventsRequest()
        resumed.CopyFrom(self._request)
        resumed.resume_token = resume_token
        resumed.ClearField("after_seq")
        self._request = resumed
        if self._tell is not None:
            self._tell(resume_token)

    def resume_delay_s(self, error: AnnalsRpcError | None, policy: RetryPolicy) -> float:
        """Seconds to wait before the next stream. None: the server ended it in order.

        Raises `error` when there is no next one.
        """
        if error is not None and not is_transient(error):
            raise error
        self._failures += 1
        asked_s = error.retry_after_s if error is not None else None
        delay_s = max(policy.backoff_s(self._failures), asked_s or 0.0)
        if error is not None and self._stalled_s() + delay_s >= self._timeout_s:
            raise error
        return delay_s

    def _stalled_s(self) -> float:
        now_s = time.monotonic()
        if self._stalled_since_s is None:
            self._stalled_since_s = now_s
        return now_s - self._stalled_since_s


def watch(
    conversation_id: str = "",
    *,
    agent_id: str = "",
    branch: int = 0,
    after_seq: int | None = None,
    resume_token: str = "",
    on_resume_token: Callable[[str], None] | None = None,
    timeout: float = WATCH_TIMEOUT_S,
) -> Watch:
    """New events of a conversation or of an agent, as they are committed; goes on until closed.

    Reconnects by itself without gaps or repeats; `timeout`: seconds without a connection after
    which it gives up. `after_seq`: begin after this position of the conversation, else from now
    on. To go on in another process, keep what `on_resume_token` is told (every event before it
    has been taken) and give it as `resume_token`.
    """
    request = pb.WatchEventsRequest(
        conversation_id=conversation_id,
        agent_id=agent_id,
        branch=branch,
        after_seq=after_seq,
        resume_token=resume_token,
    )
    return Watch(request, on_resume_token=on_resume_token, timeout_s=timeout)
