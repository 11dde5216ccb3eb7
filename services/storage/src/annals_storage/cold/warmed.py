"""Readers of events that return the words of cold ones as if they were in PostgreSQL."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache, wraps
from operator import methodcaller
from typing import Any, Protocol, TypeVar, cast
from uuid import UUID

from annals_storage.domain.events import Event, EventPage

StoreT = TypeVar("StoreT")
MAX_PAGE_BYTES = 16 * 1024 * 1024
"""Of words in one page, as UTF-8. PostgreSQL, which bounds pages so too, cannot see cold ones."""
FIRST_EVENTS = 50
"""How many events of a page are filled before their size is looked at."""


class Words(Protocol):
    """Where cold words are read."""

    async def fill(self, tenant_id: UUID, events: Sequence[Event]) -> list[Event]:
        """Return the events, in order, with the words of cold ones."""


def warmed(store: StoreT, words: Words) -> StoreT:
    """Return a store with the methods of `store` whose results hold no cold event.

    The first argument of a method that returns events is the tenant's id, or has it as
    `tenant_id`. Events are found in what a method
    returns or yields: alone, in sequences, in mappings' values and in dataclasses' fields.
    """
    return cast("StoreT", _Warmed(store, words))


class _Warmed:
    def __init__(self, store: object, words: Words) -> None:
        self._store, self._words = store, words

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if inspect.isasyncgenfunction(method):
            wrapped: Any = _iterating(method, self._words)
        elif inspect.iscoroutinefunction(method):
            wrapped = _awaiting(method, self._words)
        else:
            return method
        setattr(self, name, wrapped)
        return wrapped


def _awaiting(method: Callable[..., Awaitable[Any]], words: Words) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await _warm(args, await method(*args, **kwargs), words)

    return call


def _iterating(
    method: Callable[..., AsyncIterator[Any]], words: Words
) -> Callable[..., AsyncIterator[Any]]:
    @wraps(method)
    async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for item in method(*args, **kwargs):
            yield await _warm(args, item, words)

    return call


def _tenant(args: tuple[Any, ...]) -> UUID:
    first = args[0]
    return first if isinstance(first, UUID) else cast("UUID", first.tenant_id)


async def _warm(args: tuple[Any, ...], result: Any, words: Words) -> Any:
    cold = [event for event in _events(result) if event.cold_segment_id is not None]
    if not cold:
        return result
    tenant_id = _tenant(args)
    if isinstance(result, EventPage):
        return await _warm_page(tenant_id, result, words)
    filled = await words.fill(tenant_id, cold)
    return _replaced(result, {event.event_id: event for event in filled})


async def _warm_page(tenant_id: UUID, page: EventPage, words: Words) -> EventPage:
    """Fill a page and cut it where it gets too long, as PostgreSQL does with words it has."""
    kept: list[Event] = []
    size = 0
    for start in range(0, len(page.events), FIRST_EVENTS):
        for event in await words.fill(tenant_id, page.events[start : start + FIRST_EVENTS]):
            size += _size_bytes(event)
            if kept and size > MAX_PAGE_BYTES:
                return replace(page, events=tuple(kept), has_more=True)
            kept.append(event)
    return replace(page, events=tuple(kept))


def _size_bytes(event: Event) -> int:
    body = event.body
    texts = (body.content, body.tool_input, body.tool_result, body.error_message)
    return sum(len((text or "").encode()) for text in texts)


def _events(value: Any) -> list[Event]:
    if isinstance(value, Event):
        return [value]
    kind: Any = type(value)
    parts = _parts_of(kind)
    return [event for item in parts(value) for event in _events(item)] if parts else []


@cache
def _parts_of(kind: type[Any]) -> Callable[[Any], Iterable[Any]] | None:
    """Return what gives the parts of values of a type; None: they have none.

    By type, since a search has hundreds of values and a handful of types.
    """
    if issubclass(kind, list | tuple):
        return iter
    if issubclass(kind, Mapping):
        return methodcaller("values")
    if not is_dataclass(kind):
        return None
    names = [field.name for field in fields(kind)]
    return lambda value: [getattr(value, name) for name in names]


def _replaced(value: Any, filled: Mapping[UUID, Event]) -> Any:
    if isinstance(value, Event):
        # Former versions of an event have its id, and words of their own.
        is_cold = value.cold_segment_id is not None
        return filled.get(value.event_id, value) if is_cold else value
    if isinstance(value, list):
        return [_replaced(item, filled) for item in value]
    if isinstance(value, tuple):
        return _replaced_tuple(value, filled)
    if isinstance(value, Mapping):
        return {key: _replaced(item, filled) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type) and _events(value):
        changed = {f.name: _replaced(getattr(value, f.name), filled) for f in fields(value)}
        return replace(value, **changed)
    return value


def _replaced_tuple(value: tuple[Any, ...], filled: Mapping[UUID, Event]) -> tuple[Any, ...]:
    items = [_replaced(item, filled) for item in value]
    # A named tuple takes its items one by one.
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
