"""Domain errors: each knows its gRPC code, its reason and what to do about it.

Handlers and commands raise these; one interceptor turns them into a
`google.rpc.Status` (see `annals_common.interceptors.errors`).
"""

from annals_common.errors.access import (
    CredentialsInvalidError,
    JobLeaseLostError,
    NotConfiguredError,
    ProviderLogsDisabledError,
    ScopeMissingError,
    SessionAlreadyMergedError,
    UserTokenInvalidError,
    UserTokenRequiredError,
)
from annals_common.errors.base import (
    MAX_ECHOED_VALUE_CHARS,
    AnnalsError,
    FieldViolation,
    echo,
)
from annals_common.errors.capacity import (
    ColdStorageUnavailableError,
    DeadlineExceededError,
    DependencyUnavailableError,
    EngineUnavailableError,
    OverloadedError,
    WatcherTooSlowError,
)
from annals_common.errors.history import (
    ConversationNotActiveError,
    EventDeletedError,
    EventErasedError,
    RelationshipCycleError,
    SummarySourceChangedError,
    ToolCallNotFoundError,
)
from annals_common.errors.requests import (
    BudgetTooSmallError,
    FieldInvalidError,
    IdempotencyKeyReusedError,
    ImportInvalidError,
    LimitExceededError,
    PageTokenInvalidError,
    ResourceAlreadyExistsError,
    ResourceNotFoundError,
    SeqMismatchError,
    VersionMismatchError,
    ViewExpiredError,
    ViewInvalidError,
)

__all__ = [
    "MAX_ECHOED_VALUE_CHARS",
    "AnnalsError",
    "BudgetTooSmallError",
    "ColdStorageUnavailableError",
    "ConversationNotActiveError",
    "CredentialsInvalidError",
    "DeadlineExceededError",
    "DependencyUnavailableError",
    "EngineUnavailableError",
    "EventDeletedError",
    "EventErasedError",
    "FieldInvalidError",
    "FieldViolation",
    "IdempotencyKeyReusedError",
    "ImportInvalidError",
    "JobLeaseLostError",
    "LimitExceededError",
    "NotConfiguredError",
    "OverloadedError",
    "PageTokenInvalidError",
    "ProviderLogsDisabledError",
    "RelationshipCycleError",
    "ResourceAlreadyExistsError",
    "ResourceNotFoundError",
    "ScopeMissingError",
    "SeqMismatchError",
    "SessionAlreadyMergedError",
    "SummarySourceChangedError",
    "ToolCallNotFoundError",
    "UserTokenInvalidError",
    "UserTokenRequiredError",
    "VersionMismatchError",
    "ViewExpiredError",
    "ViewInvalidError",
    "WatcherTooSlowError",
    "echo",
]
