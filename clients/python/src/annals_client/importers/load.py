"""Stores the conversations of files. What is stored already is found, not stored again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annals.storage.v1 import event_service_pb2 as pb
from annals_client.bulk import BATCH_EVENTS
from annals_client.client import AnnalsClient
from annals_client.errors import AlreadyExistsError, IdempotencyKeyReusedError
from annals_client.importers import dialogue, openai
from annals_client.importers.documents import Document, Format, ImportFileError, read_documents

Report = Callable[[int, int], None]
"""Told the characters read of the current file and the events stored in all."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """`forced`: the format, else found out. `as_new`: a new copy whatever is stored."""

    forced: Format | None = None
    agent_id: str = ""
    title: str = ""
    as_new: bool = False
    batch_size: int = BATCH_EVENTS


@dataclass(slots=True)
class ImportSummary:
    """What an import did. `replayed_events` and `skipped_conversations` were there before.

    `conversation_ids` are those of all conversations in the files, the skipped ones too.
    """

    conversation_ids: list[str] = field(default_factory=list)
    stored_conversations: int = 0
    events: int = 0
    replayed_events: int = 0
    repairs: int = 0
    memories: int = 0
    skipped_conversations: int = 0
    seconds: float = 0.0


class Importer:
    """Imports files through a client.

    Conversations have ids made from their content and events have keys made from their
    position, so an import that is repeated, or resumed after a crash, stores nothing twice.
    """

    def __init__(self, client: AnnalsClient, options: ImportOptions) -> None:
        self._client, self._options = client, options
        self.summary = ImportSummary()

    def load(self, path: Path, report: Report = lambda _chars, _events: None) -> None:
        """Import one file. Raises ImportFileError and AnnalsRpcError."""
        started_s = time.monotonic()
        read_chars = 0

        def note(chars: int) -> None:
            nonlocal read_chars
            read_chars = chars
            report(read_chars, self.summary.events)

        for document in read_documents(path, self._options.forced, note):
            self._store(document, lambda: report(read_chars, self.summary.events))
        self.summary.seconds += time.monotonic() - started_s

    def _store(self, document: Document, tell: Callable[[], None]) -> None:
        events = _keyed(self._events(document))
        first = next(events, None)
        if first is None:
            raise ImportFileError(f"{document.place}: has no events")
        conversation_id = self._conversation(document)
        is_news = self._append(conversation_id, _joined(first, events), tell)
        self.summary.conversation_ids.append(conversation_id)
        self.summary.stored_conversations += is_news
        self.summary.skipped_conversations += not is_news

    def _append(
        self, conversation_id: str, events: Iterable[pb.NewEvent], tell: Callable[[], None]
    ) -> bool:
        """Store the events; tells whether any of them had not been there before."""
        before, replayed = self.summary.events, self.summary.replayed_events
        size = self._options.batch_size
        for done in self._client.events.stream_append(conversation_id, events, batch_size=size):
            self.summary.events = before + done.events
            self.summary.replayed_events = replayed + done.replayed_events
            tell()
        return self.summary.events - before > self.summary.replayed_events - replayed

    def _conversation(self, document: Document) -> str:
        described = dialogue if document.format == "dialogue" else openai
        wanted = str(uuid.uuid4()) if self._options.as_new else document.conversation_id
        metadata: dict[str, Any] = {**described.metadata_of(document), "source": document.path.name}
        try:
            self._client.conversations.create(
                conversation_id=wanted,
                agent_id=self._options.agent_id,
                title=self._options.title or described.title_of(document),
                metadata=metadata,
            )
        except (AlreadyExistsError, IdempotencyKeyReusedError):
            # Imported before under another title, file name or agent: it keeps those.
            return wanted
        return wanted

    def _events(self, document: Document) -> Iterator[pb.NewEvent]:
        if document.format == "dialogue":
            return dialogue.events_of(document)
        parsed = self._client.formats.parse(openai.payload_of(document))
        self.summary.repairs += len(parsed.repairs)
        return iter(parsed.events)


def _keyed(events: Iterator[pb.NewEvent]) -> Iterator[pb.NewEvent]:
    for index, event in enumerate(events):
        event.idempotency_key = f"import-{index + 1}"
        yield event


def _joined(first: pb.NewEvent, rest: Iterator[pb.NewEvent]) -> Iterator[pb.NewEvent]:
    yield first
    yield from rest
