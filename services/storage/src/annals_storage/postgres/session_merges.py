"""Moves the conversations of sessions to users."""

from __future__ import annotations

from uuid import UUID

from annals_common.errors import SessionAlreadyMergedError
from annals_storage.domain.merging import Merge, Merged
from annals_storage.postgres.database import Database, sql


class PostgresSessionMerges:
    """The register of merged sessions; each belongs to one user for good."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def merge(self, tenant_id: UUID, merge: Merge) -> Merged:
        """Move what is left of the session, have the mirror follow and note it, or nothing.

        Raises SessionAlreadyMergedError when the session is another user's.
        """
        params = {
            "tenant_id": tenant_id,
            **{name: getattr(merge, name) for name in merge.__slots__},
        }
        async with self._database.transaction(tenant_id) as transaction:
            await transaction.run(sql("note_merge"), params)
            # Taken first: merges of one session follow one another.
            [noted] = await transaction.run(sql("lock_merge"), params)
            if noted["user_id"] != merge.user_id:
                raise SessionAlreadyMergedError(merge.session_id)
            moved = await transaction.run(sql("move_session"), params)
            ids = [row["conversation_id"] for row in moved]
            if ids:
                await transaction.run(
                    sql("enqueue_conversations"), {**params, "conversation_ids": ids}
                )
                await transaction.run(sql("count_merge"), {**params, "moved_count": len(ids)})
        return Merged(len(ids), noted["merged_at"])
