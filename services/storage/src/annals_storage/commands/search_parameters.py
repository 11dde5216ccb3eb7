"""How a tenant's searches rank: the defaults and what the tenant has of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from annals_storage.commands.remembering import Remembering, utc_now
from annals_storage.domain.search_parameters import (
    Overrides,
    SearchParameters,
    check_stages,
    parameters_of,
)
from annals_storage.ports.search import SearchParameterStore


class TenantParameters:
    """Remembers parameters for a few seconds, so that a search does not ask for them."""

    def __init__(
        self, store: SearchParameterStore, *, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._store = store
        self._remembered = Remembering(self._lookup, now=now)

    async def __call__(self, tenant_id: UUID) -> SearchParameters:
        """Return what a search goes by. Raises ResourceNotFoundError without the tenant."""
        found = await self._remembered(tenant_id)
        return (found or await self._lookup(tenant_id))[1]

    async def get(self, tenant_id: UUID) -> tuple[SearchParameters, frozenset[str]]:
        """Return the parameters and which are the tenant's own. Raises ResourceNotFoundError."""
        overrides = await self._store.get(tenant_id)
        return parameters_of(overrides)

    async def update(
        self, tenant_id: UUID, values: Overrides
    ) -> tuple[SearchParameters, frozenset[str]]:
        """Set parameters by name, None: to the default again; return all as `get` does.

        Raises ResourceNotFoundError, and FieldInvalidError when all weights of a stage were 0.
        """
        before = await self._store.get(tenant_id)
        wanted, _ = parameters_of({**before, **values})
        check_stages(wanted)
        after = await self._store.change(tenant_id, values)
        self._remembered.forget(lambda known: known[0] == tenant_id)
        return parameters_of(after)

    async def _lookup(self, tenant_id: UUID) -> tuple[UUID, SearchParameters]:
        parameters, _ = await self.get(tenant_id)
        return tenant_id, parameters
