"""Assembled contexts in PostgreSQL."""

from __future__ import annotations

from uuid import UUID

from psycopg.rows import DictRow

from annals_common.errors import ResourceNotFoundError
from annals_storage.domain.context_cache import (
    CacheLimits,
    FoundContext,
    NewContext,
    WantedContext,
)
from annals_storage.postgres.database import Database, Params, Rows, Statement, sql

MAX_OF_CONVERSATION = 32
"""Contexts of one conversation: of several requests, and former versions to compare with."""


class PostgresContextCache:
    """Contexts of a tenant. `code_version`: of what answers searches."""

    def __init__(self, database: Database, limits: CacheLimits, code_version: str) -> None:
        self._database, self._limits = database, limits
        self._code_version = code_version

    async def get(self, tenant_id: UUID, wanted: WantedContext) -> FoundContext:
        """Raises ResourceNotFoundError."""
        params = self._state_params(tenant_id, wanted)
        statements: list[Statement] = [(sql("get_cached_context"), params)]
        if wanted.previous_version:
            version = {**params, "context_version": wanted.previous_version}
            statements.append((sql("get_context_of_version"), version))
        found, *previous = await self._database.run(tenant_id, *statements)
        row = _only(found, wanted.conversation_id)
        return FoundContext(
            state=_state(row),
            conversation_version=row["version"],
            body=row["body"] or b"",
            previous_body=next((each["body"] for rows in previous for each in rows), b""),
        )

    async def put(self, tenant_id: UUID, new: NewContext) -> tuple[bool, bool]:
        """Return whether the state is still the same, and whether the context is kept.

        Raises ResourceNotFoundError.
        """
        is_kept = 0 < len(new.body) <= self._limits.body_bytes
        params = self._put_params(tenant_id, new)
        async with self._database.transaction(tenant_id) as tx:
            await tx.run(sql("chunk_lock"), params)
            row = _only(await tx.run(sql("get_cached_context"), params), new.conversation_id)
            if _state(row) != new.state:
                return False, False
            if is_kept:
                await tx.run(sql("put_cached_context"), params)
                await tx.run(sql("evict_cached_contexts"), params)
        return True, is_kept

    def _state_params(self, tenant_id: UUID, wanted: WantedContext) -> Params:
        return {
            "tenant_id": tenant_id,
            "conversation_id": wanted.conversation_id,
            "request_digest": wanted.request_digest,
            "held_state": wanted.held_state or None,
            "code_version": self._code_version,
        }

    def _put_params(self, tenant_id: UUID, new: NewContext) -> Params:
        held = WantedContext(new.conversation_id, new.request_digest, held_state=new.state)
        return {
            **self._state_params(tenant_id, held),
            "conversation_ids": [new.conversation_id],
            "state": new.state,
            "context_version": new.context_version,
            "body": new.body,
            "ttl_seconds": self._limits.ttl_seconds,
            "max_of_conversation": MAX_OF_CONVERSATION,
            "max_of_tenant_bytes": self._limits.tenant_bytes,
        }


def _only(rows: Rows, conversation_id: UUID) -> DictRow:
    if not rows:
        raise ResourceNotFoundError("conversation", str(conversation_id))
    return rows[0]


def _state(row: DictRow) -> bytes:
    return row["state"] if row["is_settled"] else b""
