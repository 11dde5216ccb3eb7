"""What the use cases need from the outside world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.material import Period, Summary, Topic
from annals_context.domain.model import Hit
from annals_context.domain.options import IndexChoices
from annals_context.domain.system_prompt import ClientContext, Injection


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf storage is asked. `timeout_s`: what is left of the deadline, if any.

    `end_user`: the metadata that names the end user of the call, as it was sent.
    """

    authorization: str = field(repr=False)
    request_id: str
    timeout_s: float | None = None
    end_user: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ConversationFacts:
    """What a context needs to know of a conversation."""

    conversation_id: str
    agent_id: str
    event_count: int
    version: int
    current_branch: int = 1
    title: str = ""
    user_id: str = ""
    session_id: str = ""
    client: ClientContext = field(default_factory=ClientContext)


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What a context needs to know of an agent."""

    system_prompt: str = ""
    model: str = ""
    injection: Injection = field(default_factory=Injection)
    index: IndexChoices = field(default_factory=IndexChoices)


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Hits, best first, and why they may be fewer than there are."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose the credentials are. `tenant_id` is empty for the installation's admin key.

    `is_publishable`: an end user's browser has the key, which is bound to `agent_id`. `user_id`,
    `session_id`: the end user the call is made for, if any.
    """

    tenant_id: str
    is_publishable: bool = False
    agent_id: str = ""
    user_id: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalScope:
    """Where to look. All conditions must hold; without any it is the whole tenant."""

    conversation_ids: tuple[str, ...] = ()
    agent_id: str = ""
    user_id: str = ""
    session_id: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None


class Storage(Protocol):
    """The storage service. Every method raises AnnalsError as storage did."""

    async def identify(self, caller: Caller) -> Identity:
        """Return whose the credentials are. Raises for invalid ones."""

    async def get_conversation(self, caller: Caller, conversation_id: str) -> ConversationFacts:
        """Return the conversation. Raises when it is not visible."""

    async def get_agent(self, caller: Caller, agent_id: str) -> AgentFacts:
        """Return the agent."""

    async def list_newest(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        limit: int,
        roles: Sequence[Role] = (),
    ) -> list[Event]:
        """Return the newest events of a branch (0: the current one), newest first."""

    async def list_between(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        after_seq: int,
        before_seq: int,
        types: Sequence[EventType],
    ) -> list[Event]:
        """Return the events strictly between two positions, oldest first."""

    async def search(
        self,
        caller: Caller,
        conversation_id: str,
        query: str,
        *,
        branch: int,
        limit: int,
        read_your_writes: bool,
    ) -> SearchAnswer:
        """Search a branch of one conversation."""


class RetrievalStorage(Storage, Protocol):
    """Storage, for what looks beyond one conversation."""

    async def search_scope(
        self, caller: Caller, query: str, scope: RetrievalScope, *, limit: int
    ) -> SearchAnswer:
        """Search the conversations of a scope, each on its current branch."""


class Topics(Protocol):
    """Topics of conversations."""

    async def list_topics(
        self, caller: Caller, conversation_id: str, *, branch: int, limit: int
    ) -> Sequence[Topic]:
        """Return the largest topics; none when nothing was clustered yet."""

    async def list_periods(
        self, caller: Caller, conversation_id: str, *, branch: int
    ) -> Sequence[Period]:
        """Return the periods that hold events, newest first."""


class Summaries(Protocol):
    """Summaries of conversations."""

    async def list_summaries(
        self, caller: Caller, conversation_id: str, *, branch: int, limit: int
    ) -> Sequence[Summary]:
        """Return valid summaries that together cover as much as possible, oldest range first.

        Older parts come more compressed; ranges do not overlap.
        """

    async def quoted(self, caller: Caller, conversation_id: str, summary_id: str) -> Sequence[int]:
        """Return the positions of the events a summary quotes, in its order, each once.

        Raises ResourceNotFoundError for a summary of another conversation, too.
        """


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """What storage knows of a context. `state` is empty while nothing may be kept.

    `body` and `previous_body`: as they were put, empty when none is kept.
    """

    state: bytes
    body: bytes = b""
    previous_body: bytes = b""


@dataclass(frozen=True, slots=True)
class ContextToKeep:
    """A context that was assembled in a state. `body` empty: only the state is to be confirmed."""

    conversation_id: str
    request_digest: bytes
    state: bytes
    context_version: str
    body: bytes


class SharedContexts(Protocol):
    """Contexts that all processes share, in storage. Raises AnnalsError as storage did."""

    async def find(
        self,
        caller: Caller,
        conversation_id: str,
        request_digest: bytes,
        *,
        held_state: bytes,
        previous_version: str,
    ) -> CachedAnswer:
        """Return the present state and what is kept in it, save what the caller holds."""

    async def keep(self, caller: Caller, context: ContextToKeep) -> tuple[bool, bool]:
        """Return whether the state is still the same, and whether it is kept."""
