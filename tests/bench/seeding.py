"""Fills an installation with long conversations faster than a model could embed them.

Events are appended through the client. They are then mirrored by the service's own indexer,
outbox and engine adapter, run in this process with an embedder that answers from a pool of real
vectors of similar texts. So rows, points and term weights are what they would be; only the dense
vectors are shared by many events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import psycopg
from numpy.typing import NDArray
from tests.bench.harness import progress
from tests.bench.stack import Account, Stack
from tests.bench.texts import messages

from annals_client import user
from annals_storage.domain.late_interaction import TokenVectors
from annals_storage.embedding.bm25 import Bm25Encoder
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.worker import Indexer
from annals_storage.postgres.database import Database
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.vectors.edge import EdgeVectorIndex

POOL_TEXTS = 1_000
APPEND_BATCH = 500
HOLD_BACK = "ALTER TABLE annals.outbox ALTER COLUMN available_at SET DEFAULT 'infinity'"
HAND_OUT = "ALTER TABLE annals.outbox ALTER COLUMN available_at SET DEFAULT now()"
_RELEASE = "UPDATE annals.outbox SET available_at = now()"


class PooledEmbedder:
    """Answers with vectors of other texts; otherwise the model it stands for."""

    def __init__(
        self,
        embedder: FastembedEmbedder,
        pool: NDArray[np.float32],
        tokens: Sequence[TokenVectors],
    ) -> None:
        """`pool` has shape (texts, dimensions); `tokens` are of the same texts."""
        self._embedder, self._pool, self._tokens = embedder, pool, tokens
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self.max_tokens = embedder.max_tokens

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions); the same text gets the same one."""
        return self._pool[self._places(texts)]

    async def embed_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[TokenVectors]]:
        """Return what `embed` returns, and the tokens of the texts these vectors are of."""
        places = self._places(texts)
        return self._pool[places], [self._tokens[place] for place in places]

    def _places(self, texts: Sequence[str]) -> list[int]:
        digests = [hashlib.sha256(text.encode()).digest() for text in texts]
        return [int.from_bytes(digest[:8]) % len(self._pool) for digest in digests]

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the offsets of the model's tokens."""
        return self._embedder.token_spans(text)


def administer(stack: Stack, statement: str) -> None:
    """Run one statement as superuser."""
    with psycopg.connect(stack.postgres.admin_url, autocommit=True) as connection:
        connection.execute(statement)


def append_conversations(stack: Stack, account: Account, sizes: Sequence[int]) -> Mapping[int, str]:
    """Append conversations of these sizes, held back from the indexer; return ids by size."""
    administer(stack, HOLD_BACK)
    ids = {}
    with stack.client(account.api_key) as client, progress() as shown:
        for seed, size in enumerate(sizes):
            ids[size] = client.conversations.create().conversation_id
            events = (user(text) for text in messages(size, seed=seed))
            task = shown.add_task(f"append {size}", total=size)
            for done in client.events.stream_append(ids[size], events, batch_size=APPEND_BATCH):
                shown.update(task, completed=done.events)
    administer(stack, HAND_OUT)
    return ids


async def mirror_everything(stack: Stack, embedder: FastembedEmbedder, *, total: int) -> None:
    """Mirror what was held back. Storage must not be running: the engine serves one process."""
    administer(stack, _RELEASE)
    pool, tokens = await embedder.embed_tokens(list(messages(POOL_TEXTS, seed=99)))
    database = Database(stack.postgres.app_url)
    vectors = EdgeVectorIndex(stack.data_dir / "vectors", dimensions=embedder.dimensions)
    await database.open()
    await vectors.open()
    try:
        outbox = PostgresOutbox(database)
        mirror = Mirror(
            outbox=outbox,
            vectors=vectors,
            embedder=PooledEmbedder(embedder, pool, tokens),
            sparse=Bm25Encoder(),
        )
        await _mirror_all(Indexer(outbox=outbox, mirror=mirror, owner="bench"), total)
    finally:
        await vectors.close()
        await database.close()


async def _mirror_all(indexer: Indexer, total: int) -> None:
    with progress() as shown:
        task = shown.add_task("mirror", total=total)
        while mirrored := await indexer.step():
            shown.advance(task, mirrored)
