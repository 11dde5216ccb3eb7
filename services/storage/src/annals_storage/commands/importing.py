"""Imports: conversations from JSON Lines, all or none of a file.

The file is received first, so that the transaction never waits for the client. Lines are read
and judged in a thread, a batch at a time, and stored in the order of the file.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import IO
from uuid import UUID

from annals_common.errors import (
    DependencyUnavailableError,
    ImportInvalidError,
    ResourceAlreadyExistsError,
)
from annals_storage.commands.exporting import Reading, Slots
from annals_storage.commands.import_files import LineReader, receive
from annals_storage.domain.transfer import Digest, Line
from annals_storage.domain.transfer_check import Section
from annals_storage.domain.transfer_fields import LineInvalidError
from annals_storage.domain.transfer_lines import Kind
from annals_storage.ports.embedding import TokenCounter
from annals_storage.ports.live import Notifier
from annals_storage.ports.transfer import (
    ConversationRaceError,
    FillsEvents,
    TransferStore,
    TransferWriter,
)

MAX_CONVERSATIONS = 1_000
BATCH_LINES = 500
BATCH_BYTES = 4 * 1024 * 1024
MEMORY_BYTES = 1024 * 1024
ATTEMPTS = 3
"""Of an import that meets another one of the same conversations."""
_ID_FIELDS = {
    Kind.EVENT: "event_id",
    Kind.MEMORY: "memory_id",
    Kind.ATTACHMENT: "attachment_id",
    Kind.RELATIONSHIP: "relationship_id",
}

_UNFOUNDED = {
    "parent_event_id": "no earlier event of the conversation; correct it or leave it out",
    "tool_call_id": "no tool call earlier in the conversation; add the call before the result",
}


@dataclass(slots=True)
class ImportSummary:
    """What an import did."""

    conversation_count: int = 0
    event_count: int = 0
    memory_count: int = 0
    skipped_conversation_count: int = 0
    conversation_ids: list[UUID] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Step:
    """Lines of one kind and one conversation that are stored together."""

    section: Section
    kind: Kind
    lines: tuple[Line, ...]
    rows_json: str = ""

    @property
    def number(self) -> int:
        """The first line, for errors."""
        return self.lines[0].number


@dataclass(slots=True)
class ImportConversations:
    """Stores files of conversations. `embedding_dimensions`: of this server's model, now."""

    store: TransferStore
    fill: FillsEvents
    notifier: Notifier
    counter: TokenCounter
    embedding_dimensions: Callable[[], int]
    slots: Slots = field(default_factory=lambda: Slots("imports", 2))

    async def __call__(self, tenant_id: UUID, parts: AsyncIterator[bytes]) -> ImportSummary:
        """Store a file; conversations that are there already, equal to the bit, are skipped.

        Raises ImportInvalidError, ResourceAlreadyExistsError, LimitExceededError,
        OverloadedError.
        """
        with self.slots.taken(), tempfile.SpooledTemporaryFile(MEMORY_BYTES) as spool:
            await receive(parts, spool)
            summary, stored = await self._store_again_after_races(tenant_id, spool)
        if stored:
            self.notifier.notify(tenant_id, stored)
        return summary

    async def _store_again_after_races(
        self, tenant_id: UUID, spool: IO[bytes]
    ) -> tuple[ImportSummary, list[UUID]]:
        for _ in range(ATTEMPTS):
            try:
                async with self.store.importing(tenant_id) as writer:
                    run = _Import(self, writer, tenant_id)
                    await run.take(LineReader(spool))
                    return run.summary, run.stored
            except ConversationRaceError:
                continue
        raise DependencyUnavailableError("another import of the same conversations")


class _Import:
    """One attempt, in one transaction."""

    def __init__(
        self, settings: ImportConversations, writer: TransferWriter, tenant_id: UUID
    ) -> None:
        self._settings, self._writer, self._tenant_id = settings, writer, tenant_id
        self.summary = ImportSummary()
        self.stored: list[UUID] = []
        self._is_skipped = False

    async def take(self, reader: LineReader) -> None:
        """Store the whole file."""
        batches = _Batches(reader, partial(self._section, self._settings.embedding_dimensions()))
        while steps := await asyncio.to_thread(batches.next_steps):
            for step in steps:
                try:
                    await self._take_step(step)
                except LineInvalidError as error:
                    raise ImportInvalidError(str(error), line=step.number) from error
            await self._check_references(steps[-1].section)

    def _section(self, embedding_dimensions: int) -> Section:
        counter = self._settings.counter
        return Section(self._tenant_id, embedding_dimensions, lambda text: counter.count([text])[0])

    async def _take_step(self, step: _Step) -> None:
        if step.kind is Kind.CONVERSATION:
            await self._begin(step)
        elif step.kind is Kind.END:
            await self._end(step.section)
        elif step.kind is not Kind.HEADER and not self._is_skipped:
            await self._insert(step)

    async def _begin(self, step: _Step) -> None:
        conversation_id = step.section.conversation_id
        if len(self.summary.conversation_ids) >= MAX_CONVERSATIONS:
            raise LineInvalidError(
                f"more than {MAX_CONVERSATIONS:,} conversations; send several files"
            )
        self.summary.conversation_ids.append(conversation_id)
        self._is_skipped = await self._writer.conversation(conversation_id) is not None
        if self._is_skipped:
            return
        agent_id = step.section.conversation.get("agent_id")
        if agent_id is not None and not await self._writer.has_agent(UUID(agent_id)):
            raise LineInvalidError(f"there is no agent {agent_id}; create it first")
        await self._writer.insert(step.kind, conversation_id, step.rows_json)

    async def _insert(self, step: _Step) -> None:
        if (name := _ID_FIELDS.get(step.kind)) is not None:
            ids = [line.values[name] for line in step.lines]
            if (known := await self._writer.known(step.kind, ids)) is not None:
                raise ResourceAlreadyExistsError(step.kind, known)
        await self._writer.insert(step.kind, step.section.conversation_id, step.rows_json)

    async def _check_references(self, section: Section) -> None:
        """Look up what events of the lines that are stored by now name."""
        references, section.references = section.references, []
        if self._is_skipped or not references:
            return
        conversation_id = section.conversation_id
        found = await self._writer.unfounded(conversation_id, references)
        if found is not None:
            line, name = found
            raise ImportInvalidError(f"{name} names {_UNFOUNDED[name]}", line=line)

    async def _end(self, section: Section) -> None:
        conversation_id = section.conversation_id
        await self._check_references(section)
        if self._is_skipped:
            if await self._present_digest(conversation_id) != section.digest.hexdigest():
                raise ResourceAlreadyExistsError("conversation", str(conversation_id))
            self.summary.skipped_conversation_count += 1
            return
        problem = await self._writer.problem(conversation_id)
        if problem is not None:
            name, value = problem
            raise LineInvalidError(f"{name} {value} is nothing of conversation {conversation_id}")
        self.stored.append(conversation_id)
        self.summary.conversation_count += 1
        self.summary.event_count += section.digest.lines.get(Kind.EVENT, 0)
        self.summary.memory_count += section.digest.lines.get(Kind.MEMORY, 0)

    async def _present_digest(self, conversation_id: UUID) -> str | None:
        """Return the digest an export of what is there would have; None when it is deleted."""
        row = await self._writer.conversation(conversation_id)
        if row is None or row["deleted_at"] is not None:
            return None
        digest = Digest()
        reading = Reading(self._writer, self._settings.fill, self._tenant_id, row)
        async for kind, encoded in reading.encoded():
            digest.take(kind, encoded)
        return digest.hexdigest()


class _Batches:
    """Judges lines and makes steps of them. Runs in a thread. Raises ImportInvalidError."""

    def __init__(self, reader: LineReader, new_section: Callable[[], Section]) -> None:
        self._reader, self._new_section = reader, new_section
        self._section = new_section()
        self._sections = 0

    def next_steps(self) -> list[_Step]:
        """Return the next steps, in order; none at the end."""
        taken: list[tuple[Section, Line]] = []
        size = 0
        while len(taken) < BATCH_LINES and size < BATCH_BYTES:
            found = self._reader.next_line()
            if found is None:
                self._check_end()
                break
            line, line_bytes = found
            size += line_bytes
            taken.append((self._judged(line), line))
        return list(_steps(taken))

    def _judged(self, line: Line) -> Section:
        if self._section.ended:
            self._section = self._new_section()
        section = self._section
        try:
            section.take(line)
        except LineInvalidError as error:
            raise ImportInvalidError(str(error), line=line.number) from error
        return section

    def _check_end(self) -> None:
        if not self._section.ended:
            cause = (
                "the line end is missing; the file was cut" if self._reader.number else "is empty"
            )
            raise ImportInvalidError(cause, line=self._reader.number + 1)


def _steps(taken: Sequence[tuple[Section, Line]]) -> Iterable[_Step]:
    """Yield lines of one conversation and kind together; observations after their events."""
    for _, group in groupby(taken, key=lambda item: id(item[0])):
        members = list(group)
        section = members[0][0]
        kinds = sorted({line.kind for _, line in members}, key=list(Kind).index)
        for kind in kinds:
            yield _step(section, kind, tuple(line for _, line in members if line.kind is kind))


def _step(section: Section, kind: Kind, lines: tuple[Line, ...]) -> _Step:
    if kind in {Kind.HEADER, Kind.END}:
        return _Step(section, kind, lines)
    rows = [line.row() for line in lines]
    return _Step(section, kind, lines, json.dumps(rows, ensure_ascii=False))
