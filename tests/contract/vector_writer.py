"""A process that writes to a shard until it is killed. Run with the shard's directory.

Prints a line per finished upsert: the number of points written so far.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from uuid import UUID

from tests.contract.vector_points import DIMENSIONS, chunk

from annals_storage.vectors.edge import EdgeVectorIndex

TENANT = UUID(int=1)
BATCH_POINTS = 64


async def write_for_ever(directory: Path) -> None:
    index = EdgeVectorIndex(directory, dimensions=DIMENSIONS)
    await index.open()
    written = 0
    while True:
        await index.upsert([chunk(TENANT) for _ in range(BATCH_POINTS)])
        written += BATCH_POINTS
        sys.stdout.write(f"{written}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(write_for_ever(Path(sys.argv[1])))
