"""What the state of a conversation forbids."""

from __future__ import annotations

import grpc

from annals_common.errors.base import AnnalsError, FieldViolation, echo


class ConversationNotActiveError(AnnalsError):
    """The conversation is completed or archived and takes no events."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "CONVERSATION_NOT_ACTIVE"

    def __init__(self, conversation_id: str, status: str) -> None:
        super().__init__(
            f"conversation {conversation_id} is {status}; set its status to ACTIVE to write again",
            metadata={"conversation_id": conversation_id, "status": status},
        )


class ToolCallNotFoundError(AnnalsError):
    """A tool result names a call the conversation does not hold."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "TOOL_CALL_NOT_FOUND"

    def __init__(self, field: str, tool_call_id: str) -> None:
        description = "names no tool call earlier in the conversation; append the call first"
        super().__init__(
            f"{field}: {description}",
            metadata={"field": field, "tool_call_id": echo(tool_call_id)},
            violations=[FieldViolation(field, description)],
        )


class EventDeletedError(AnnalsError):
    """The event was deleted and must be restored first."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "EVENT_DELETED"

    def __init__(self, event_id: str) -> None:
        super().__init__(
            f"event {event_id} is deleted; restore it first", metadata={"event_id": event_id}
        )


class EventErasedError(AnnalsError):
    """The event was erased: nothing but its place is left."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "EVENT_ERASED"

    def __init__(self, event_id: str) -> None:
        super().__init__(
            f"event {event_id} was erased and cannot be changed", metadata={"event_id": event_id}
        )


class RelationshipCycleError(AnnalsError):
    """A relationship would lead from something to itself."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "RELATIONSHIP_CYCLE"

    def __init__(self, relationship_type: str, source: str) -> None:
        super().__init__(
            f"{relationship_type} would lead from {echo(source)} back to itself",
            metadata={"type": relationship_type, "source": echo(source)},
        )


class SummarySourceChangedError(AnnalsError):
    """What a summary was made of changed since it was read."""

    code = grpc.StatusCode.ABORTED
    reason = "SUMMARY_SOURCE_CHANGED"

    def __init__(self, first_seq: int, last_seq: int) -> None:
        super().__init__(
            f"the events {first_seq} to {last_seq} changed since they were read; read them again",
            metadata={"first_seq": str(first_seq), "last_seq": str(last_seq)},
        )
