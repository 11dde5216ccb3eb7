"""Embeddings of a batch: each text once, and not at all when it was embedded before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from annals_storage.domain.embedding_bytes import from_bytes
from annals_storage.domain.indexing import StoredEmbedding
from annals_storage.domain.late_interaction import pack_signs
from annals_storage.domain.search import DenseVector
from annals_storage.indexer.metrics import EMBED_SECONDS, EMBEDDED_CHUNKS
from annals_storage.ports.embedding import Embedder

HASH_BYTES = 16
EMBED_TEXTS = 256
"""Embedded at a time. The tokens of a text take 100 KB until only their signs are kept."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """What a text means: as a whole, and token by token as signs (`pack_signs`)."""

    dense: DenseVector
    token_signs: bytes


def content_hash(text: str) -> bytes:
    """Return what tells a text from others of its tenant."""
    return hashlib.sha256(text.encode()).digest()[:HASH_BYTES]


async def embeddings_by_hash(
    texts: Mapping[bytes, str], stored: Mapping[bytes, StoredEmbedding], embedder: Embedder
) -> dict[bytes, Embedding]:
    """Return the embedding of every text, by its hash. Only what is not stored is embedded."""
    found = {
        key: Embedding(from_bytes(stored[key].embedding), stored[key].token_signs)
        for key in texts
        if key in stored
    }
    fresh = sorted((key for key in texts if key not in found), key=lambda key: len(texts[key]))
    for first in range(0, len(fresh), EMBED_TEXTS):
        some = fresh[first : first + EMBED_TEXTS]
        with EMBED_SECONDS.time():
            vectors, tokens = await embedder.embed_tokens([texts[key] for key in some])
        EMBEDDED_CHUNKS.inc(len(some))
        made = zip(some, vectors, tokens, strict=True)
        found |= {key: Embedding(vector, pack_signs(own)) for key, vector, own in made}
    return found
