"""Reads hits of the mirror back."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from psycopg.rows import DictRow

from annals_common.errors import ResourceNotFoundError
from annals_storage.domain.search import BranchPart, FoundEvent, SearchScope
from annals_storage.postgres.database import Database, sql
from annals_storage.postgres.rows import event_from, uuid_array_text


class PostgresHits:
    """Events as a search may show them. Chunks are of `embedding_model` where there are such."""

    def __init__(self, database: Database, embedding_model: str | None = None) -> None:
        self._database, self._model = database, embedding_model

    async def get_hits(
        self, scope: SearchScope, chunks: Sequence[tuple[UUID, int]]
    ) -> dict[tuple[UUID, int], FoundEvent]:
        """Return the events of (event_id, chunk_index), by these, in view for the scope."""
        params = {
            "tenant_id": scope.tenant_id,
            "event_ids": uuid_array_text(event_id for event_id, _ in chunks),
            "chunk_indexes": [chunk_index for _, chunk_index in chunks],
            "branch": scope.branch,
            "all_branches": scope.all_branches,
            "embedding_model": self._model,
        }
        [rows] = await self._database.run(scope.tenant_id, (sql("get_hits"), params))
        return {(row["event_id"], row["chunk_index"]): _found_from(row) for row in rows}

    async def get_view(
        self, tenant_id: UUID, conversation_id: UUID, branch: int
    ) -> tuple[BranchPart, ...]:
        """Return the parts of a branch's view.

        Raises ResourceNotFoundError without the conversation or the branch.
        """
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "branch": branch}
        [rows] = await self._database.run(tenant_id, (sql("get_search_view"), params))
        if not rows:
            raise ResourceNotFoundError("conversation", str(conversation_id))
        if rows[0]["branch"] is None:
            raise ResourceNotFoundError("branch", f"{conversation_id} branch {branch}")
        return tuple(BranchPart(**row) for row in rows)


def _found_from(row: DictRow) -> FoundEvent:
    return FoundEvent(
        event=event_from(row),
        chunk_start=row["start_char"],
        chunk_end=row["end_char"],
        agent_id=row["agent_id"],
        user_id=row["user_id"],
        session_id=row["session_id"],
    )
