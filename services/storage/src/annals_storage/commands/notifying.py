"""Appends that tell watches what they committed."""

from __future__ import annotations

from collections.abc import Sequence

from annals_common.errors import AnnalsError
from annals_storage.domain.appending import Append, AppendResult
from annals_storage.ports.events import AppendStore
from annals_storage.ports.live import Notifier


class NotifyingAppends:
    """An append store that notifies after each commit."""

    def __init__(self, store: AppendStore, notifier: Notifier) -> None:
        self._store, self._notifier = store, notifier

    async def store(self, appends: Sequence[Append]) -> list[AppendResult | AnnalsError]:
        """Store appends of one tenant in one transaction; return an outcome for each."""
        outcomes = await self._store.store(appends)
        changed = {each.conversation_id for each in outcomes if isinstance(each, AppendResult)}
        if changed:
            self._notifier.notify(appends[0].tenant_id, changed)
        return outcomes
