"""What texts are embedded and counted with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from annals_storage.domain.late_interaction import TokenVectors
from annals_storage.domain.search import SparseVector


class Embedder(Protocol):
    """A text embedding model."""

    @property
    def model(self) -> str:
        """Name under which embeddings are stored."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    @property
    def max_tokens(self) -> int:
        """Tokens one text may have, special tokens included; more are cut off."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return L2-normalised vectors of shape (len(texts), dimensions), in order."""

    async def embed_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[TokenVectors]]:
        """Return what `embed` returns, and for each text the vectors of its telling tokens."""

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character offsets of the model's tokens, specials left out."""


class SparseEncoder(Protocol):
    """Turns text into term weights for BM25."""

    def encode_document(self, text: str) -> SparseVector:
        """Encode a text to be found."""

    def encode_query(self, text: str, language: str | None = None) -> SparseVector:
        """Encode a query. `language`: see domain/languages.py; None: to be told from the text."""


class TokenCounter(Protocol):
    """Counts tokens for the ledger of a conversation."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text in o200k_base."""


class Tokenizer(TokenCounter, Protocol):
    """Counts tokens and tells where they are."""

    def token_starts(self, text: str) -> list[int]:
        """Return, for each token of a text, the character it begins in."""
