"""What calls made for an end user may say of owners and agents: they get their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import resources_pb2 as pb
from annals_common.errors import FieldInvalidError, UserTokenRequiredError
from annals_common.principal import EndUser, Principal, current_principal
from annals_storage.domain.conversations import ConversationQuery

_SERVER_FIELDS = ("host_conversation_id", "org_id", "provider_conversation_id")
_SERVER_EVENT_FIELDS = ("model", "provider_response_id", "usage")


def own_draft(conversation: pb.Conversation) -> pb.Conversation:
    """Return the conversation with the caller as its owner; without an end user as it is.

    Raises FieldInvalidError when it names somebody else, or what only servers set.
    """
    principal = current_principal()
    whom = principal.end_user
    if whom is None:
        return conversation
    refuse_other("conversation.user_id", conversation.user_id, whom.user_id)
    refuse_other("conversation.session_id", conversation.session_id, whom.session_id)
    draft = pb.Conversation()
    draft.CopyFrom(conversation)
    draft.user_id = whom.user_id or ""
    draft.session_id = "" if whom.user_id else whom.session_id or ""
    if principal.publishable:
        _refuse_servers(conversation, principal)
        draft.agent_id = str(principal.agent_id)
    return draft


def _refuse_servers(conversation: pb.Conversation, principal: Principal) -> None:
    refuse_other("conversation.agent_id", conversation.agent_id.lower(), str(principal.agent_id))
    for name in _SERVER_FIELDS:
        if value := getattr(conversation, name):
            raise FieldInvalidError(f"conversation.{name}", "is only for secret keys to set", value)


def own_query(method: str, query: ConversationQuery) -> ConversationQuery:
    """Return the query narrowed to what the end user may list; without one as it is.

    A session lists its anonymous conversations; a user's are listed with a signed token alone,
    since nothing else keeps others from enumerating them. Raises UserTokenRequiredError, and
    FieldInvalidError when the query names somebody else.
    """
    principal = current_principal()
    whom = principal.end_user
    if whom is None:
        return query
    refuse_hidden(show_deleted=query.show_deleted)
    user_id, session_id = own_selection(method, whom, query.user_id, query.session_id)
    return replace(
        query,
        user_id=user_id,
        session_id=session_id,
        anonymous=user_id is None,
        agent_id=own_agent(query.agent_id),
    )


def own_selection(
    method: str, whom: EndUser, user_id: str | None, session_id: str | None
) -> tuple[str | None, str | None]:
    """Return the (user, session) to list by: as asked, or else the better proved one."""
    refuse_other("user_id", user_id, whom.user_id)
    refuse_other("session_id", session_id, whom.session_id)
    if user_id and session_id:
        raise FieldInvalidError("session_id", "must be empty when user_id is set", session_id)
    by_session = session_id or (None if user_id or whom.verified else whom.session_id)
    if by_session:
        return None, by_session
    if not whom.verified:
        raise UserTokenRequiredError(method)
    return whom.user_id, None


def own_agent(agent_id: UUID | None) -> UUID | None:
    """Return the agent to look at: a publishable key's own. Raises FieldInvalidError."""
    principal = current_principal()
    if not principal.publishable:
        return agent_id
    if agent_id not in (None, principal.agent_id):
        raise FieldInvalidError("agent_id", "must be empty or the key's own agent", agent_id)
    return principal.agent_id


def refuse_other(field: str, given: str | None, own: str | None) -> None:
    """Raises FieldInvalidError when a field names somebody else than the caller."""
    if given and given != own:
        raise FieldInvalidError(field, "must be empty or the caller's own", given)


def refuse_hidden(*, show_deleted: bool) -> None:
    """What was deleted stays hidden from end users. Raises FieldInvalidError."""
    if show_deleted and current_principal().end_user is not None:
        raise FieldInvalidError("show_deleted", "is not for end users")


def check_own_events(events: Sequence[event_pb.NewEvent]) -> None:
    """Refuse, of a publishable key, everything but what the end user says: answers, tools and
    usage are the server's to write. Raises FieldInvalidError.
    """
    if not current_principal().publishable:
        return
    for index, event in enumerate(events):
        path = f"events[{index}]"
        if event.message.role != pb.ROLE_USER:
            raise FieldInvalidError(path, "must be a message of role USER with a publishable key")
        for set_field, _ in event.ListFields():
            if set_field.name in _SERVER_EVENT_FIELDS:
                raise FieldInvalidError(
                    f"{path}.{set_field.name}", "is only for secret keys to set"
                )
