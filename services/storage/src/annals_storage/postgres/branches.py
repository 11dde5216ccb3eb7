"""Opens, lists and selects branches."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals_common.errors import (
    IdempotencyKeyReusedError,
    LimitExceededError,
    ResourceNotFoundError,
)
from annals_storage.domain.branches import (
    MAX_BRANCHES,
    Branch,
    NewBranch,
    Part,
    changed_parts,
    shared_parts,
)
from annals_storage.postgres.database import Database, Transaction, sql
from annals_storage.postgres.views import part_arrays, seq_in_view, view_of


class PostgresBranches:
    """Branches of a conversation. Every change runs under the conversation's row lock."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, tenant_id: UUID, new: NewBranch) -> Branch:
        """Return the branch opened by this call, or by the one it repeats.

        Raises ResourceNotFoundError, IdempotencyKeyReusedError, LimitExceededError.
        """
        async with self._database.transaction(tenant_id) as transaction:
            change = await _Change.begin(transaction, tenant_id, new.conversation_id)
            branch = await change.replayed(new) or await change.open(new)
            return await change.get(branch)

    async def select(self, tenant_id: UUID, conversation_id: UUID, branch: int) -> Branch:
        """Make a branch current and have the mirror follow. Raises ResourceNotFoundError."""
        async with self._database.transaction(tenant_id) as transaction:
            change = await _Change.begin(transaction, tenant_id, conversation_id)
            await change.view(branch)
            await change.select(branch)
            return await change.get(branch)

    async def page(
        self, tenant_id: UUID, conversation_id: UUID, *, after_branch: int, limit: int
    ) -> list[Branch]:
        """Return one page, oldest first; empty only without the conversation or behind its end."""
        params = _page_params(tenant_id, conversation_id, after_branch=after_branch, limit=limit)
        [rows] = await self._database.run(tenant_id, (sql("list_branches"), params))
        return [Branch(**row) for row in rows]


class _Change:
    """A transaction that holds the lock of one conversation."""

    def __init__(
        self, transaction: Transaction, ids: dict[str, Any], locked: dict[str, Any]
    ) -> None:
        self._transaction, self._ids = transaction, ids
        self._current: int = locked["current_branch"]
        self._count: int = locked["branch_count"]

    @classmethod
    async def begin(
        cls, transaction: Transaction, tenant_id: UUID, conversation_id: UUID
    ) -> _Change:
        """Lock. Raises ResourceNotFoundError."""
        ids = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        locked = await transaction.run(sql("lock_conversation"), ids)
        if not locked:
            raise ResourceNotFoundError("conversation", str(conversation_id))
        return cls(transaction, ids, locked[0])

    async def replayed(self, new: NewBranch) -> int | None:
        """Return the branch an earlier call with the same request_id opened."""
        if new.request_id is None:
            return None
        rows = await self._run("get_branch_request", request_id=new.request_id)
        if rows and rows[0]["request_hash"] != new.request_hash:
            raise IdempotencyKeyReusedError(str(new.request_id), kind="request_id")
        return rows[0]["branch"] if rows else None

    async def open(self, new: NewBranch) -> int:
        """Insert the branch and, where asked, make it current."""
        if self._count >= MAX_BRANCHES:
            raise LimitExceededError(
                "conversation_id", limit=MAX_BRANCHES, actual=self._count + 1, unit="branches"
            )
        parent = new.parent_branch or self._current
        view = await self.view(parent)
        fork_seq = 0
        if new.event_id is not None:
            fork_seq = await seq_in_view(self._transaction, self._ids, view, new.event_id)
        parts = part_arrays(shared_parts(view, fork_seq))
        [opened] = await self._run(
            "open_branch",
            parent_branch=parent,
            fork_seq=fork_seq,
            **parts,
            display_name=new.display_name,
            request_id=new.request_id,
            request_hash=new.request_hash,
        )
        if new.select:
            await self.select(opened["branch"])
        branch: int = opened["branch"]
        return branch

    async def view(self, branch: int) -> list[Part]:
        """Return what a branch shows. Raises ResourceNotFoundError."""
        return await view_of(self._transaction, self._ids, branch)

    async def select(self, branch: int) -> None:
        """Make it current; what comes into view or leaves it is mirrored again."""
        if branch == self._current:
            return
        parts = changed_parts(await self.view(self._current), await self.view(branch))
        await self._run("select_branch", branch=branch)
        await self._run("enqueue_parts", **part_arrays(parts))

    async def get(self, branch: int) -> Branch:
        """Return the branch as it is now."""
        page = _page_params(**self._ids, after_branch=branch - 1, limit=1)
        [row] = await self._transaction.run(sql("list_branches"), page)
        return Branch(**row)

    async def _run(self, name: str, **params: Any) -> list[dict[str, Any]]:
        return await self._transaction.run(sql(name), {**self._ids, **params})


def _page_params(
    tenant_id: UUID, conversation_id: UUID, *, after_branch: int, limit: int
) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "conversation_id": conversation_id,
        "after_branch": after_branch,
        "limit": limit,
    }
