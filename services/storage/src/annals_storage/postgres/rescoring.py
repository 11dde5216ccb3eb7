"""Reads what candidates of a search are compared by."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from annals_storage.domain.embedding_bytes import from_bytes
from annals_storage.domain.search import Candidate, DenseVector
from annals_storage.postgres.database import Database, sql
from annals_storage.postgres.rows import ROLES, uuid_array_text


class PostgresRescoring:
    """Chunks, as late interaction sees them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_candidates(
        self, tenant_id: UUID, chunk_ids: Sequence[UUID]
    ) -> dict[UUID, Candidate]:
        """Return the candidates by chunk id; chunks that are gone are missing."""
        params = {"tenant_id": tenant_id, "chunk_ids": uuid_array_text(chunk_ids)}
        rows = await self._database.run_binary(tenant_id, sql("get_rescoring"), params)
        return {
            chunk_id: Candidate(token_signs, author_name, ROLES[role], *others)
            for chunk_id, token_signs, author_name, role, *others in rows
        }

    async def get_newest_time(
        self, tenant_id: UUID, conversation_ids: Sequence[UUID]
    ) -> datetime | None:
        """Return when the newest event of the conversations happened; None without events."""
        params = {"tenant_id": tenant_id, "conversation_ids": list(conversation_ids)}
        [[row]] = await self._database.run(tenant_id, (sql("get_newest_time"), params))
        newest: datetime | None = row["event_time"]
        return newest

    async def get_embeddings(
        self, tenant_id: UUID, chunk_ids: Sequence[UUID]
    ) -> dict[UUID, DenseVector]:
        """Return the vectors by chunk id, shape (dimensions,); chunks that are gone are missing."""
        params = {"tenant_id": tenant_id, "chunk_ids": list(chunk_ids)}
        [rows] = await self._database.run(tenant_id, (sql("get_chunk_embeddings"), params))
        return {row["chunk_id"]: from_bytes(row["embedding"]) for row in rows}
