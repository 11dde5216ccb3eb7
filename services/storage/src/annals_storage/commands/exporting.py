"""Exports: a conversation as a file, as of one moment.

The file is written to a temporary one first: reading takes one short transaction however slowly
the client takes the parts, and memory holds a page at a time.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO
from uuid import UUID

from annals_common.errors import OverloadedError, ResourceNotFoundError
from annals_storage.domain.events import Event
from annals_storage.domain.export_csv import CsvWriter
from annals_storage.domain.export_formats import ExportFormat, Writer
from annals_storage.domain.export_json import JsonWriter
from annals_storage.domain.export_markdown import MarkdownWriter
from annals_storage.domain.transfer import (
    Digest,
    dumped,
    encode,
    event_values,
    former_values,
    header,
)
from annals_storage.domain.transfer_lines import Kind
from annals_storage.ports.transfer import FillsEvents, Row, TransferReader, TransferStore

PART_BYTES = 64 * 1024
MAX_READS = 3
"""Exports that read at a time; the others wait, or send what they have read."""
MEMORY_BYTES = 1024 * 1024
"""A smaller file never touches the disk."""
_WRITERS: dict[ExportFormat, Callable[[], Writer]] = {
    ExportFormat.JSON: JsonWriter,
    ExportFormat.MARKDOWN: MarkdownWriter,
    ExportFormat.CSV: CsvWriter,
}
_AFTER_EVENTS = (Kind.MEMORY, Kind.ATTACHMENT, Kind.RELATIONSHIP, Kind.REQUEST, Kind.USAGE)


class Slots:
    """How many transfers run at a time; more are refused with OVERLOADED."""

    def __init__(self, what: str, count: int) -> None:
        self._what, self._count, self._taken = what, count, 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take one for the length of the block."""
        if self._taken >= self._count:
            raise OverloadedError(f"{self._count} {self._what} are being served")
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


@dataclass(frozen=True, slots=True)
class Reading:
    """A conversation on its way into a file."""

    reader: TransferReader
    fill: FillsEvents
    tenant_id: UUID
    row: Row

    @property
    def conversation_id(self) -> UUID:
        """Return whose file it is."""
        found: UUID = self.row["conversation_id"]
        return found

    async def encoded(self) -> AsyncIterator[tuple[Kind, str]]:
        """Yield the lines of JSON Lines, without their ends, up to the line that ends the file."""
        async for kind, values in self._lines():
            yield kind, encode(kind, values)

    async def _lines(self) -> AsyncIterator[tuple[Kind, Row]]:
        yield Kind.HEADER, header(self.tenant_id, self.conversation_id)
        yield Kind.CONVERSATION, dumped(Kind.CONVERSATION, self.row)
        async for row in self.rows(Kind.BRANCH):
            yield Kind.BRANCH, dumped(Kind.BRANCH, row)
        async for page in self.event_pages(None):
            async for line in self._event_lines(page):
                yield line
        for kind in _AFTER_EVENTS:
            async for row in self.rows(kind):
                yield kind, dumped(kind, row)

    async def pieces(self, writer: Writer, branch: int) -> AsyncIterator[str]:
        """Yield the pieces of a file of another format."""
        yield writer.begin(dumped(Kind.CONVERSATION, self.row), branch)
        async for page in self.event_pages(branch):
            for event in page:
                yield writer.event(event)
        async for row in self.rows(Kind.MEMORY):
            yield writer.memory(dumped(Kind.MEMORY, row))
        yield writer.end()

    async def event_pages(self, branch: int | None) -> AsyncIterator[Sequence[Event]]:
        """Yield events page by page, cold ones with their words."""
        after_seq, more = 0, True
        while more:
            page = await self.reader.events(
                self.conversation_id, after_seq=after_seq, branch=branch
            )
            yield await self.fill.fill(self.tenant_id, page.events)
            more = page.has_more
            after_seq = page.events[-1].seq if page.events else after_seq

    async def rows(self, kind: Kind) -> AsyncIterator[Row]:
        """Yield the rows of a kind."""
        last: Row | None = None
        while page := await self.reader.rows(kind, self.conversation_id, last):
            for row in page:
                yield row
            last = page[-1]

    async def _event_lines(self, page: Sequence[Event]) -> AsyncIterator[tuple[Kind, Row]]:
        """Yield each event with its observations behind it."""
        written = 0
        async for row in self._observations([event.event_id for event in page]):
            for event in page[written : row["place"]]:
                yield Kind.EVENT, event_values(event)
            written = row["place"]
            yield Kind.OBSERVATION, _observation_values(row)
        for event in page[written:]:
            yield Kind.EVENT, event_values(event)

    async def _observations(self, event_ids: Sequence[UUID]) -> AsyncIterator[Row]:
        after = (0, 0)
        while page := await self.reader.observations(event_ids, after=after):
            for row in page:
                yield row
            after = (page[-1]["place"], page[-1]["version"])


@dataclass(slots=True)
class ExportConversation:
    """Writes files of conversations."""

    store: TransferStore
    fill: FillsEvents
    slots: Slots = field(default_factory=lambda: Slots("exports", 8))
    # Each reads on a connection of the pool, which others need too.
    reads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_READS))

    async def __call__(
        self, tenant_id: UUID, conversation_id: UUID, form: ExportFormat, branch: int | None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the file in parts of at most 64 KiB; `branch` None: the current one.

        Raises ResourceNotFoundError, OverloadedError.
        """
        with self.slots.taken(), tempfile.SpooledTemporaryFile(MEMORY_BYTES) as spool:
            async with self.reads, self.store.snapshot(tenant_id) as reader:
                row = await _visible(reader, conversation_id)
                reading = Reading(reader, self.fill, tenant_id, row)
                await _write(reading, form, branch, spool)
            spool.seek(0)
            while part := spool.read(PART_BYTES):
                yield part


async def _visible(reader: TransferReader, conversation_id: UUID) -> Row:
    row = await reader.conversation(conversation_id)
    if row is None or row["deleted_at"] is not None:
        raise ResourceNotFoundError("conversation", str(conversation_id))
    return row


async def _write(
    reading: Reading, form: ExportFormat, branch: int | None, spool: IO[bytes]
) -> None:
    if form is ExportFormat.JSON_LINES:
        digest = Digest()
        async for kind, line in reading.encoded():
            digest.take(kind, line)
            spool.write(f"{line}\n".encode())
        spool.write(f"{digest.end()}\n".encode())
        return
    chosen = branch or reading.row["current_branch"]
    if not await reading.reader.has_branch(reading.conversation_id, chosen):
        raise ResourceNotFoundError("branch", str(chosen))
    async for piece in reading.pieces(_WRITERS[form](), chosen):
        spool.write(piece.encode())


def _observation_values(row: Row) -> Row:
    values = dumped(Kind.OBSERVATION, {**row, "payload": None})
    if row["payload"] is not None:
        values["payload"] = former_values(row["payload"])
    return values
