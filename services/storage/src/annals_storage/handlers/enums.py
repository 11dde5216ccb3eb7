"""Enums of the API to enums of the domain and back."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import resources_pb2 as pb
from annals.storage.v1 import search_service_pb2 as search_pb
from annals_common.principal import Scope
from annals_storage.domain.conversations import ConversationStatus
from annals_storage.domain.event_search import SearchMode
from annals_storage.domain.events import EventStatus, EventType, Role
from annals_storage.domain.hit_groups import Grouping
from annals_storage.domain.ownership import EndUserMode
from annals_storage.domain.signing import SigningAlgorithm

EVENT_TYPES: dict[int, EventType] = {
    pb.EVENT_TYPE_MESSAGE: EventType.MESSAGE,
    pb.EVENT_TYPE_TOOL_CALL: EventType.TOOL_CALL,
    pb.EVENT_TYPE_TOOL_RESULT: EventType.TOOL_RESULT,
    pb.EVENT_TYPE_SYSTEM: EventType.SYSTEM,
    pb.EVENT_TYPE_ERROR: EventType.ERROR,
}
ROLES: dict[int, Role] = {
    pb.ROLE_USER: Role.USER,
    pb.ROLE_ASSISTANT: Role.ASSISTANT,
    pb.ROLE_SYSTEM: Role.SYSTEM,
    pb.ROLE_TOOL: Role.TOOL,
}
EVENT_STATUSES: dict[int, EventStatus] = {
    pb.EVENT_STATUS_UNSPECIFIED: EventStatus.COMPLETE,
    pb.EVENT_STATUS_PENDING: EventStatus.PENDING,
    pb.EVENT_STATUS_COMPLETE: EventStatus.COMPLETE,
    pb.EVENT_STATUS_FAILED: EventStatus.FAILED,
    pb.EVENT_STATUS_INCOMPLETE: EventStatus.INCOMPLETE,
}
STATUSES: dict[int, ConversationStatus] = {
    pb.CONVERSATION_STATUS_ACTIVE: ConversationStatus.ACTIVE,
    pb.CONVERSATION_STATUS_COMPLETED: ConversationStatus.COMPLETED,
    pb.CONVERSATION_STATUS_ARCHIVED: ConversationStatus.ARCHIVED,
}
SCOPES: dict[int, Scope] = {
    pb.API_KEY_SCOPE_DATA: Scope.DATA,
    pb.API_KEY_SCOPE_TENANT_ADMIN: Scope.TENANT_ADMIN,
}
END_USER_MODES: dict[int, EndUserMode] = {
    pb.END_USER_MODE_UNSPECIFIED: EndUserMode.TRUSTED,
    pb.END_USER_MODE_ANONYMOUS: EndUserMode.ANONYMOUS,
    pb.END_USER_MODE_TRUSTED: EndUserMode.TRUSTED,
    pb.END_USER_MODE_SIGNED: EndUserMode.SIGNED,
}
SIGNING_ALGORITHMS: dict[int, SigningAlgorithm] = {
    pb.SIGNING_ALGORITHM_HS256: SigningAlgorithm.HS256,
    pb.SIGNING_ALGORITHM_RS256: SigningAlgorithm.RS256,
    pb.SIGNING_ALGORITHM_ES256: SigningAlgorithm.ES256,
    pb.SIGNING_ALGORITHM_EDDSA: SigningAlgorithm.EDDSA,
}
PUBLISHABLE: dict[int, bool] = {
    pb.API_KEY_KIND_UNSPECIFIED: False,
    pb.API_KEY_KIND_SECRET: False,
    pb.API_KEY_KIND_PUBLISHABLE: True,
}
"""Kinds of keys: whether they are publishable."""
SEARCH_GROUPINGS: dict[int, Grouping] = {
    search_pb.SEARCH_GROUPING_UNSPECIFIED: Grouping.EVENT,
    search_pb.SEARCH_GROUPING_EVENT: Grouping.EVENT,
    search_pb.SEARCH_GROUPING_CHUNK: Grouping.CHUNK,
    search_pb.SEARCH_GROUPING_CONVERSATION: Grouping.CONVERSATION,
}
SEARCH_MODES: dict[int, SearchMode] = {
    search_pb.SEARCH_MODE_UNSPECIFIED: SearchMode.HYBRID,
    search_pb.SEARCH_MODE_HYBRID: SearchMode.HYBRID,
    search_pb.SEARCH_MODE_DENSE: SearchMode.DENSE,
    search_pb.SEARCH_MODE_LEXICAL: SearchMode.LEXICAL,
}

EVENT_TYPE_NUMBERS: dict[EventType, Any] = {value: key for key, value in EVENT_TYPES.items()}
ROLE_NUMBERS: dict[Role, Any] = {value: key for key, value in ROLES.items()}
EVENT_STATUS_NUMBERS: dict[EventStatus, Any] = {value: key for key, value in EVENT_STATUSES.items()}
STATUS_NUMBERS: dict[ConversationStatus, Any] = {value: key for key, value in STATUSES.items()}
END_USER_MODE_NUMBERS: dict[EndUserMode, Any] = {v: key for key, v in END_USER_MODES.items()}
SIGNING_ALGORITHM_NUMBERS: dict[SigningAlgorithm, Any] = {
    value: key for key, value in SIGNING_ALGORITHMS.items()
}
KIND_NUMBERS: dict[bool, Any] = {value: key for key, value in PUBLISHABLE.items()}
SCOPE_NUMBERS: dict[Scope, Any] = {value: key for key, value in SCOPES.items()}
