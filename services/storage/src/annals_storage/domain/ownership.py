"""Whose a conversation is, and who may reach it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from annals_common.principal import EndUser, Principal


class EndUserMode(StrEnum):
    """How end users prove to an agent who they are, as stored."""

    ANONYMOUS = "anonymous"
    TRUSTED = "trusted"
    SIGNED = "signed"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom a conversation belongs to. `mode` is its agent's; TRUSTED without an agent."""

    conversation_id: UUID
    agent_id: UUID | None
    user_id: str | None
    session_id: str | None
    mode: EndUserMode = EndUserMode.TRUSTED


def reaches(principal: Principal, owner: Owner) -> bool:
    """Whether the caller may reach a conversation of this owner."""
    if principal.end_user is None:
        return not principal.publishable
    if principal.publishable and owner.agent_id != principal.agent_id:
        return False
    if owner.user_id is None:
        return owner.session_id is not None and owner.session_id == principal.end_user.session_id
    return owner.user_id == principal.end_user.user_id and _believed(principal.end_user, owner.mode)


def _believed(whom: EndUser, mode: EndUserMode) -> bool:
    """Whether the agent takes the user id. Only a TRUSTED one takes it without a proof."""
    return whom.verified or mode is EndUserMode.TRUSTED
