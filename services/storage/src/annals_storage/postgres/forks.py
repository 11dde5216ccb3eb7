"""Copies conversations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals_common.errors import (
    IdempotencyKeyReusedError,
    ResourceAlreadyExistsError,
    ResourceNotFoundError,
)
from annals_storage.domain.branches import shared_parts
from annals_storage.domain.forks import Fork, NewFork, SourceIsColdError
from annals_storage.postgres.database import Database, Transaction, sql
from annals_storage.postgres.rows import conversation_from
from annals_storage.postgres.views import part_arrays, seq_in_view, view_of


class PostgresForks:
    """Copies a view into a new conversation, in one transaction and inside the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fork(self, tenant_id: UUID, new: NewFork) -> Fork:
        """Return the copy made by this call, or by the one it repeats.

        Raises ResourceNotFoundError, ResourceAlreadyExistsError, IdempotencyKeyReusedError,
        SourceIsColdError.
        """
        async with self._database.transaction(tenant_id) as transaction:
            copy = _Copy(transaction, tenant_id, new)
            source = await copy.source()
            done = await copy.replayed()
            return await copy.get(done) if done else await copy.make(source)


class _Copy:
    def __init__(self, transaction: Transaction, tenant_id: UUID, new: NewFork) -> None:
        self._transaction, self._new = transaction, new
        self._ids = {"tenant_id": tenant_id, "conversation_id": new.conversation_id}
        self._params: dict[str, Any] = {
            **self._ids,
            "new_conversation_id": new.new_conversation_id,
            "title": new.title,
            "event_id": new.event_id,
            "request_id": new.request_id,
            "request_hash": new.request_hash,
            "actor_key_id": new.actor.api_key_id,
            "actor_user_id": new.actor.user_id,
            "actor_session_id": new.actor.session_id,
        }

    async def source(self) -> dict[str, Any]:
        """Return the row of the conversation to copy. Raises ResourceNotFoundError."""
        rows = await self._transaction.run(sql("get_conversation"), self._ids)
        if not rows or rows[0]["deleted_at"] is not None:
            raise ResourceNotFoundError("conversation", str(self._new.conversation_id))
        return rows[0]

    async def replayed(self) -> UUID | None:
        """Return the copy an earlier call with this request_id made; claim the id otherwise."""
        if self._new.request_id is None or await self._run("claim_fork_request"):
            return None
        [former] = await self._run("get_fork_request")
        if former["request_hash"] != self._new.request_hash:
            raise IdempotencyKeyReusedError(str(self._new.request_id), kind="request_id")
        made: UUID = former["new_conversation_id"]
        return made

    async def get(self, conversation_id: UUID) -> Fork:
        """Return a copy as it is now. Raises ResourceNotFoundError when it was deleted."""
        ids = {**self._ids, "conversation_id": conversation_id}
        rows = await self._transaction.run(sql("get_conversation"), ids)
        if not rows or rows[0]["deleted_at"] is not None:
            raise ResourceNotFoundError("conversation", str(conversation_id))
        [copied] = await self._transaction.run(sql("count_copies"), ids)
        return Fork(conversation_from(rows[0]), copied["event_count"])

    async def make(self, source: dict[str, Any]) -> Fork:
        """Copy."""
        new = self._new
        view = await view_of(self._transaction, self._ids, new.branch or source["current_branch"])
        fork_seq = None
        if new.event_id is not None:
            fork_seq = await seq_in_view(self._transaction, self._ids, view, new.event_id)
            view = shared_parts(view, fork_seq)
        if not await self._run("fork_conversation"):
            raise ResourceAlreadyExistsError("conversation", str(new.new_conversation_id))
        [copied] = await self._run("fork_events", fork_seq=fork_seq, **part_arrays(view))
        if copied["cold_count"]:
            raise SourceIsColdError
        return await self.get(new.new_conversation_id)

    async def _run(self, name: str, **params: Any) -> list[dict[str, Any]]:
        return await self._transaction.run(sql(name), {**self._params, **params})
