"""Copies a conversation, bringing back from cold storage what it copies."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from annals_common.errors import ColdStorageUnavailableError
from annals_storage.domain.forks import Fork, NewFork, SourceIsColdError
from annals_storage.ports.conversations import ForkStore
from annals_storage.ports.live import Notifier

ATTEMPTS = 3
"""Of copying what moves into cold storage again meanwhile."""


class BringsBack(Protocol):
    """Cold storage, as far as a copy needs it."""

    async def restore(self, tenant_id: UUID, conversation_id: UUID) -> int:
        """Bring the words of a conversation back. Raises NotConfiguredError."""


class ForkConversation:
    """Copies a conversation; safe to retry."""

    def __init__(self, forks: ForkStore, cold: BringsBack, notifier: Notifier) -> None:
        self._forks, self._cold, self._notifier = forks, cold, notifier

    async def __call__(self, tenant_id: UUID, new: NewFork) -> Fork:
        """Raises what ForkStore.fork and cold storage raise.

        ColdStorageUnavailableError too when words keep moving away while they are copied.
        """
        fork = await self._fork(tenant_id, new)
        self._notifier.notify(tenant_id, [fork.conversation.conversation_id])
        return fork

    async def _fork(self, tenant_id: UUID, new: NewFork) -> Fork:
        for _ in range(ATTEMPTS):
            try:
                return await self._forks.fork(tenant_id, new)
            except SourceIsColdError:
                await self._cold.restore(tenant_id, new.conversation_id)
        raise ColdStorageUnavailableError
