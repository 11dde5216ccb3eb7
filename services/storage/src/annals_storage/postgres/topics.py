"""Topics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from annals_common.errors import ResourceNotFoundError
from annals_common.principal import JobLease
from annals_storage.domain.events import Event
from annals_storage.domain.topics import (
    Assignment,
    Clustering,
    EventEmbedding,
    NewTopic,
    Topic,
    TopicEventsQuery,
    TopicLine,
    TopicPeriod,
    TopicShare,
    WholeAssignment,
)
from annals_storage.postgres.database import Database, Rows, Transaction, sql
from annals_storage.postgres.jobs import hold_lease
from annals_storage.postgres.rows import event_from

MAX_CHUNKS = 32
"""Of an event: what it is about shows in its first chunks."""
PERIODS = ("today", "this_week", "this_month", "older")
_NO_TOPIC = UUID(int=0)
_FIGURES = ("count_topics", "drop_empty_topics", "clear_topic_days", "count_topic_days")


class PostgresTopics:
    """`TopicStore` over PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, tenant_id: UUID, conversation_id: UUID, *, branch: int | None, limit: int
    ) -> Sequence[Topic]:
        """Return the largest topics on a branch."""
        return await self._list(tenant_id, conversation_id, branch=branch, limit=limit)

    async def get(self, tenant_id: UUID, topic_id: UUID) -> Topic | None:
        """Return a topic on the current branch."""
        params = {"tenant_id": tenant_id, "topic_id": topic_id}
        [rows] = await self._database.run(tenant_id, (sql("find_topic"), params))
        found = rows and await self._list(
            tenant_id, rows[0]["conversation_id"], topic_id=topic_id, limit=1
        )
        return found[0] if found else None

    async def list_events(self, tenant_id: UUID, query: TopicEventsQuery) -> Sequence[Event]:
        """Return a page of a topic's events in view on a branch."""
        params = {name: getattr(query, name) for name in TopicEventsQuery.__slots__}
        [rows] = await self._database.run(
            tenant_id, (sql("list_topic_events"), {"tenant_id": tenant_id, **params})
        )
        return [event_from(row) for row in rows]

    async def list_periods(
        self, tenant_id: UUID, conversation_id: UUID, *, branch: int | None
    ) -> Sequence[TopicPeriod]:
        """Return the periods that hold events, newest first."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "branch": branch}
        [rows] = await self._database.run(tenant_id, (sql("list_topic_periods"), params))
        rows.sort(key=lambda row: PERIODS.index(row["period"]))
        return [_period_from(name, own) for name, own in groupby(rows, lambda r: r["period"])]

    async def _list(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        *,
        branch: int | None = None,
        topic_id: UUID | None = None,
        limit: int,
    ) -> Sequence[Topic]:
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "branch": branch,
            "topic_id": topic_id,
            "limit": limit,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_topics"), params))
        return [_topic_from(row) for row in rows]


class PostgresClustering:
    """`ClusteringStore` over PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, tenant_id: UUID, conversation_id: UUID) -> Clustering:
        """Return how far a conversation is clustered. Raises ResourceNotFoundError."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        [rows] = await self._database.run(tenant_id, (sql("get_clustering"), params))
        if not rows:
            raise ResourceNotFoundError("conversation", str(conversation_id))
        return Clustering(**{name: rows[0][name] for name in Clustering.__slots__})

    async def list_embeddings(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        *,
        embedding_model: str,
        after_seq: int,
        changed_only: bool,
        limit: int,
    ) -> Sequence[EventEmbedding]:
        """Return events by their vectors, in order."""
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "embedding_model": embedding_model,
            "after_seq": after_seq,
            "changed_only": changed_only,
            "max_chunks": MAX_CHUNKS,
            "limit": limit,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_chunk_embeddings"), params))
        return [
            EventEmbedding(
                event_id=row["event_id"],
                seq=row["seq"],
                version=row["version"],
                type=row["type"],
                embeddings=tuple(row["embeddings"]),
                topic_id=row["topic_id"],
            )
            for row in rows
        ]

    async def apply(self, tenant_id: UUID, held: JobLease, assignment: Assignment) -> None:
        """Write what was found, whole or not at all. Raises JobLeaseLostError."""
        of_conversation = {"tenant_id": tenant_id, "conversation_id": held.subject}
        # As for chunks: an erasure comes before all of this or finds all of it.
        lock = {"tenant_id": tenant_id, "conversation_ids": [held.subject]}
        async with self._database.transaction(tenant_id) as tx:
            await tx.run(sql("chunk_lock"), lock)
            await hold_lease(tx, tenant_id, held)
            if isinstance(assignment, WholeAssignment):
                await tx.run(sql("clear_topic_members"), of_conversation)
                await tx.run(sql("save_topic_run"), _run_params(of_conversation, assignment))
            await _save(tx, of_conversation, assignment)
            for figure in _FIGURES:
                await tx.run(sql(figure), of_conversation)


async def _save(tx: Transaction, of: dict[str, UUID], assignment: Assignment) -> None:
    members, topics = assignment.members, assignment.topics
    await tx.run(
        sql("save_topic_members"),
        {
            **of,
            "seqs": [seq for seq, _, _ in members],
            "versions": [version for _, version, _ in members],
            "topic_ids": [topic_id for _, _, topic_id in members],
        },
    )
    await tx.run(sql("drop_gone_members"), of)
    columns = [_topic_columns(topic) for topic in topics]
    await tx.run(
        sql("save_topics"),
        {
            **of,
            "embedding_model": assignment.embedding_model,
            **{
                name: [column[name] for column in columns]
                for name in ("topic_id", "label", "summary", "samples", "centroid", "sources")
            },
        },
    )


def _run_params(of: dict[str, UUID], assignment: WholeAssignment) -> dict[str, object]:
    return {
        **of,
        "clustered_events": len(assignment.members),
        "embedding_model": assignment.embedding_model,
        "parameters": assignment.parameters,
    }


def _topic_columns(topic: NewTopic) -> dict[str, object]:
    sources = [{"seq": seq, "version": version} for seq, version in topic.sources]
    return {
        "topic_id": topic.topic_id,
        "label": topic.label,
        "summary": _lines_json(topic.summary),
        "samples": _lines_json(topic.samples),
        "centroid": topic.centroid,
        "sources": json.dumps(sources),
    }


def _lines_json(lines: Sequence[TopicLine]) -> str:
    return json.dumps(
        [
            {"event_id": str(line.event_id), "version": line.version, "text": line.text}
            for line in lines
        ]
    )


def _topic_from(row: dict[str, Any]) -> Topic:
    values = {name: row[name] for name in Topic.__slots__}
    return Topic(**{**values, "summary": tuple(row["summary"]), "samples": tuple(row["samples"])})


def _period_from(name: str, rows: Any) -> TopicPeriod:
    own: Rows = list(rows)
    shares = tuple(
        TopicShare(row["topic_id"], row["label"], row["event_count"])
        for row in own
        if row["topic_id"] != _NO_TOPIC
    )
    return TopicPeriod(name, sum(row["event_count"] for row in own), shares)
