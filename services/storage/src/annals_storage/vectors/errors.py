"""Why an engine cannot be used. Importing this loads no engine."""

from __future__ import annotations


class CollectionMismatchError(RuntimeError):
    """The collection was made for other vectors. The message says what to do."""

    def __init__(self, collection: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"the collection {collection} holds vectors of {actual} dimensions, the embedding "
            f"model makes {expected}; remove the collection, start storage and run "
            "`annals-storage reindex`"
        )
