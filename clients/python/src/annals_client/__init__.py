"""Typed Python client of Annals.

>>> with AnnalsClient.from_environment() as client:
...     client.events.append(conversation_id, user("Where is my order?"))
"""

from annals_client.aio_client import AsyncAnnalsClient
from annals_client.build import assistant, error, message, system, tool_call, tool_result, user
from annals_client.bulk import AppendProgress
from annals_client.client import AnnalsClient
from annals_client.config import (
    ConfigurationError,
    Endpoints,
    Secret,
    Tls,
    from_environment,
    read_endpoints,
)
from annals_client.errors import (
    AlreadyExistsError,
    AnnalsClientError,
    AnnalsRpcError,
    BudgetTooSmallError,
    ConversationNotActiveError,
    DeadlineExceededError,
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    SeqMismatchError,
    ToolCallNotFoundError,
    UnauthenticatedError,
    UnavailableError,
    VersionMismatchError,
    Violation,
)
from annals_client.retry import RetryPolicy

__all__ = [
    "AlreadyExistsError",
    "AnnalsClient",
    "AnnalsClientError",
    "AnnalsRpcError",
    "AppendProgress",
    "AsyncAnnalsClient",
    "BudgetTooSmallError",
    "ConfigurationError",
    "ConversationNotActiveError",
    "DeadlineExceededError",
    "Endpoints",
    "IdempotencyKeyReusedError",
    "InvalidArgumentError",
    "NotFoundError",
    "OverloadedError",
    "PermissionDeniedError",
    "RetryPolicy",
    "Secret",
    "SeqMismatchError",
    "Tls",
    "ToolCallNotFoundError",
    "UnauthenticatedError",
    "UnavailableError",
    "VersionMismatchError",
    "Violation",
    "assistant",
    "error",
    "from_environment",
    "message",
    "read_endpoints",
    "system",
    "tool_call",
    "tool_result",
    "user",
]
