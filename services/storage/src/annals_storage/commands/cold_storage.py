"""Moves the words of old events into objects and back, and reads them where they are.

A segment holds the words of exactly the events whose rows name it. Whatever changes segments of
a conversation holds its session, so that no two of them meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import structlog
from prometheus_client import Counter

from annals_common.errors import (
    ColdStorageUnavailableError,
    NotConfiguredError,
    ResourceNotFoundError,
)
from annals_common.ids import uuid7
from annals_storage.commands.cold_cache import SegmentCache
from annals_storage.domain.cold_storage import (
    MAX_SEGMENT_BYTES,
    MAX_SEGMENT_EVENTS,
    ColdWords,
    Moved,
    Segment,
    SegmentDamagedError,
    decode,
    encode,
    folder_of,
    new_segment,
)
from annals_storage.domain.events import Event
from annals_storage.ports.lifecycle import ColdSegments, ColdSession, ObjectStore

SETTING = "ANNALS_STORAGE_COLD_STORAGE_URL"
ATTEMPTS = 5
"""Of what loses a race against a change of the same events."""
MOVED_EVENTS = Counter("annals_cold_events_total", "Events moved.", ["direction"])
COLD_FAILURES = Counter("annals_cold_failures_total", "Objects missing or damaged.", ["kind"])
log = structlog.get_logger()


class _EventsChangedError(Exception):
    """Rolls back a move whose events changed since they were read."""


class ColdStorage:
    """Cold storage of all conversations. Without `objects`, nothing can be moved or read."""

    def __init__(self, segments: ColdSegments, objects: ObjectStore | None) -> None:
        self._segments, self._objects = segments, objects
        self._cache = SegmentCache(self._load)

    async def move(
        self, tenant_id: UUID, conversation_id: UUID, *, until_seq: int | None = None
    ) -> Moved:
        """Move the words of events up to a seq; return what moved.

        Raises NotConfiguredError, ResourceNotFoundError, ColdStorageUnavailableError.
        """
        self._store()
        await self._require(tenant_id, conversation_id)
        moved = Moved()
        while part := await self._move_part(tenant_id, conversation_id, until_seq):
            moved += part
        MOVED_EVENTS.labels("out").inc(moved.event_count)
        return moved

    async def restore(self, tenant_id: UUID, conversation_id: UUID) -> int:
        """Move everything back; return how many events. Raises as `move`."""
        self._store()
        await self._require(tenant_id, conversation_id)
        async with self._segments.session(tenant_id, conversation_id) as session:
            segments = await session.segments()
        restored = 0
        for segment in segments:
            restored += await self._restore_segment(tenant_id, segment)
        return restored

    async def bring_back(
        self, tenant_id: UUID, conversation_id: UUID, event_ids: Sequence[UUID]
    ) -> list[Segment]:
        """Move back the segments these events are in; return those segments.

        Raises NotConfiguredError, ColdStorageUnavailableError.
        """
        async with self._segments.session(tenant_id, conversation_id) as session:
            segments = await session.segments_of(event_ids)
        for segment in segments:
            await self._restore_segment(tenant_id, segment)
        return segments

    async def fill(self, tenant_id: UUID, events: Sequence[Event]) -> list[Event]:
        """Return the events, in order, with the words of cold ones.

        Raises ColdStorageUnavailableError when an object is missing or damaged.
        """
        found: dict[UUID, ColdWords] = {}
        wanted = {e.event_id: e.cold_segment_id for e in events if is_cold(e)}
        for _ in range(ATTEMPTS):
            if not wanted:
                return [_with_words(event, found) for event in events]
            missed = await self._read(tenant_id, wanted, found)
            wanted = await self._look_again(tenant_id, missed, found)
        COLD_FAILURES.labels("missing").inc()
        log.error("cold words missing", segments=sorted({str(one) for one in wanted.values()}))
        raise ColdStorageUnavailableError

    async def check_reach(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Raises NotConfiguredError when the conversation has segments and there is no store."""
        if self._objects is not None:
            return
        async with self._segments.session(tenant_id, conversation_id) as session:
            _refuse_blindness(await session.segments())

    async def remove_orphans(
        self, tenant_id: UUID, conversation_id: UUID, *, dry_run: bool = False
    ) -> int:
        """Remove objects that no segment of the conversation names; return how many."""
        async with self._segments.session(tenant_id, conversation_id) as session:
            segments = await session.segments()
            if self._objects is None:
                _refuse_blindness(segments)
                return 0
            folder = folder_of(tenant_id, conversation_id)
            known = {segment.path for segment in segments}
            paths = [f"{folder}/{name}" for name in await self._objects.names(folder)]
            orphans = [path for path in paths if path not in known]
            for path in () if dry_run else orphans:
                await self._objects.delete(path)
        return len(orphans)

    async def erase_tenant(self, tenant_id: UUID) -> int:
        """Remove every object of a tenant that no segment names; return how many."""
        return sum(
            [await self.remove_orphans(tenant_id, one) for one in await self.folders(tenant_id)]
        )

    async def folders(self, tenant_id: UUID) -> list[UUID]:
        """Return the conversations that have, or had, objects."""
        if self._objects is None:
            return []
        return [UUID(name) for name in await self._objects.names(str(tenant_id)) if _is_uuid(name)]

    async def count_objects(self, tenant_id: UUID, conversation_id: UUID) -> int:
        """Return how many objects a conversation has."""
        if self._objects is None:
            return 0
        return len(await self._objects.names(folder_of(tenant_id, conversation_id)))

    async def count_tenant_objects(self, tenant_id: UUID) -> int:
        """Return how many objects a tenant has."""
        return sum(
            [await self.count_objects(tenant_id, one) for one in await self.folders(tenant_id)]
        )

    async def count_objects_with(
        self, tenant_id: UUID, conversation_id: UUID, event_id: UUID
    ) -> int:
        """Return how many objects of a conversation hold words of an event, by reading all."""
        async with self._segments.session(tenant_id, conversation_id) as session:
            segments = await session.segments()
            loaded = [await self._load(segment) for segment in segments]
        holding = sum(event_id in (words or {}) for words in loaded)
        orphans = await self.remove_orphans(tenant_id, conversation_id, dry_run=True)
        return holding + orphans

    async def _move_part(
        self, tenant_id: UUID, conversation_id: UUID, until_seq: int | None
    ) -> Moved | None:
        for _ in range(ATTEMPTS):
            try:
                async with self._segments.session(tenant_id, conversation_id) as session:
                    return await self._move_segment(session, tenant_id, conversation_id, until_seq)
            except _EventsChangedError:
                continue
        raise ColdStorageUnavailableError

    async def _move_segment(
        self,
        session: ColdSession,
        tenant_id: UUID,
        conversation_id: UUID,
        until_seq: int | None,
    ) -> Moved | None:
        stored = await session.next_words(
            until_seq=until_seq, max_events=MAX_SEGMENT_EVENTS, max_bytes=MAX_SEGMENT_BYTES
        )
        if not stored:
            return None
        data = await asyncio.to_thread(encode, [item.words for item in stored])
        segment = new_segment(tenant_id, conversation_id, uuid7(), stored, data)
        await self._write(segment, data)
        if not await session.store(segment, stored):
            await self._store().delete(segment.path)
            raise _EventsChangedError
        return Moved(len(stored), segment.stored_bytes)

    async def _write(self, segment: Segment, data: bytes) -> None:
        await self._store().write(segment.path, data)
        if await self._store().read(segment.path) != data:
            COLD_FAILURES.labels("damaged").inc()
            raise ColdStorageUnavailableError

    async def _restore_segment(self, tenant_id: UUID, segment: Segment) -> int:
        async with self._segments.session(tenant_id, segment.conversation_id) as session:
            if segment.segment_id not in {one.segment_id for one in await session.segments()}:
                return 0
            words = await self._load(segment)
            if words is None:
                COLD_FAILURES.labels("missing").inc()
                log.error("cold object missing", segment_id=str(segment.segment_id))
                raise ColdStorageUnavailableError
            restored = await session.put_back(segment, list(words.values()))
        self._cache.forget(tenant_id, segment.segment_id)
        await self._store().delete(segment.path)
        MOVED_EVENTS.labels("back").inc(restored)
        return restored

    async def _read(
        self, tenant_id: UUID, wanted: dict[UUID, UUID | None], found: dict[UUID, ColdWords]
    ) -> list[UUID]:
        """Put the words wanted into `found`; return the events whose words were not there."""
        segment_ids = {one for one in wanted.values() if one is not None}
        segments = await self._segments.get(tenant_id, segment_ids)
        for segment_id in sorted(segments):
            words = await self._cache.get(tenant_id, segments[segment_id])
            found.update({key: words[key] for key in wanted if key in words})
        return [event_id for event_id in wanted if event_id not in found]

    async def _look_again(
        self, tenant_id: UUID, missed: list[UUID], found: dict[UUID, ColdWords]
    ) -> dict[UUID, UUID | None]:
        """Words may have moved since the row was read: return what is still cold, and where."""
        if not missed:
            return {}
        now = await self._segments.words_now(tenant_id, missed)
        found.update({key: item for key, item in now.items() if isinstance(item, ColdWords)})
        return {key: item for key, item in now.items() if isinstance(item, UUID)}

    async def _load(self, segment: Segment) -> dict[UUID, ColdWords] | None:
        data = await self._store().read(segment.path)
        if data is None:
            return None
        try:
            words = await asyncio.to_thread(decode, data, segment.sha256)
        except SegmentDamagedError as error:
            COLD_FAILURES.labels("damaged").inc()
            log.exception("cold object damaged", segment_id=str(segment.segment_id))
            raise ColdStorageUnavailableError from error
        return {item.event_id: item for item in words}

    def _store(self) -> ObjectStore:
        if self._objects is None:
            raise NotConfiguredError(SETTING)
        return self._objects

    async def _require(self, tenant_id: UUID, conversation_id: UUID) -> None:
        if not await self._segments.exists(tenant_id, conversation_id):
            raise ResourceNotFoundError("conversation", str(conversation_id))


def is_cold(event: Event) -> bool:
    """Whether the words of an event are elsewhere."""
    return event.cold_segment_id is not None and event.erased_at is None


def _with_words(event: Event, found: dict[UUID, ColdWords]) -> Event:
    words = found.get(event.event_id)
    if words is None or not is_cold(event):
        return event
    body = replace(
        event.body,
        content=words.content,
        tool_input=words.tool_input,
        tool_result=words.tool_result,
        error_message=words.error_message,
    )
    return replace(event, body=body, metadata=words.metadata_dict())


def _refuse_blindness(segments: Sequence[Segment]) -> None:
    if segments:
        raise NotConfiguredError(SETTING)


def _is_uuid(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
