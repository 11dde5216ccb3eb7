"""What the use cases need from the outside world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.material import Period, Summary, Topic
from annals_context.domain.model import Hit
from annals_context.domain.options import IndexChoices


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


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What a context needs to know of an agent."""

    system_prompt: str = ""
    model: str = ""
    index: IndexChoices = field(default_factory=IndexChoices)


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Hits, best first, and why they may be fewer than there are."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose the credentials are. `tenant_id` is empty for the installation's admin key.

    `is_publishable`: an end user's browser has the key.
    """

    tenant_id: str
    is_publishable: bool = False


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
