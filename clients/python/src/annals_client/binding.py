"""Binds request builders to a transport, keeping their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from annals.storage.v1 import resources_pb2 as res
from annals_client.aio_transport import AsyncTransport
from annals_client.calls import Call, Pages
from annals_client.streams import Download, Upload, Watch
from annals_client.transport import Transport

T = TypeVar("T")
P = ParamSpec("P")


class Noun:
    """Methods about one kind of thing, made over a transport for threads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _unary(self, call: Call[T]) -> T:
        return self._transport.unary(call)

    def _pages(self, pages: Pages[T]) -> Iterator[T]:
        return self._transport.pages(pages)

    def _download(self, download: Download) -> Iterator[bytes]:
        return self._transport.download(download)

    def _upload(self, upload: Upload[T]) -> T:
        return self._transport.upload(upload)

    def _watch(self, watch: Watch) -> Iterator[res.Event]:
        return self._transport.watch(watch)


class AsyncNoun:
    """Methods about one kind of thing, made over a transport for asyncio."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def _unary(self, call: Call[T]) -> Coroutine[Any, Any, T]:
        return self._transport.unary(call)

    def _pages(self, pages: Pages[T]) -> AsyncIterator[T]:
        return self._transport.pages(pages)

    def _download(self, download: Download) -> AsyncIterator[bytes]:
        return self._transport.download(download)

    def _upload(self, upload: Upload[T]) -> Coroutine[Any, Any, T]:
        return self._transport.upload(upload)

    def _watch(self, watch: Watch) -> AsyncIterator[res.Event]:
        return self._transport.watch(watch)


def unary(build: Callable[P, Call[T]]) -> Callable[Concatenate[Noun, P], T]:
    """Make a method of a `Noun` that makes the built call."""
    return _bound("_unary", build)


def listing(build: Callable[P, Pages[T]]) -> Callable[Concatenate[Noun, P], Iterator[T]]:
    """Make a method of a `Noun` that iterates over the built pages."""
    return _bound("_pages", build)


def download(build: Callable[P, Download]) -> Callable[Concatenate[Noun, P], Iterator[bytes]]:
    """Make a method of a `Noun` that iterates over the parts of a file."""
    return _bound("_download", build)


def upload(build: Callable[P, Upload[T]]) -> Callable[Concatenate[Noun, P], T]:
    """Make a method of a `Noun` that sends a file."""
    return _bound("_upload", build)


def watching(build: Callable[P, Watch]) -> Callable[Concatenate[Noun, P], Iterator[res.Event]]:
    """Make a method of a `Noun` that iterates over events as they come."""
    return _bound("_watch", build)


def async_unary(
    build: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncNoun, P], Coroutine[Any, Any, T]]:
    """Make a method of an `AsyncNoun` that makes the built call."""
    return _bound("_unary", build)


def async_listing(
    build: Callable[P, Pages[T]],
) -> Callable[Concatenate[AsyncNoun, P], AsyncIterator[T]]:
    """Make a method of an `AsyncNoun` that iterates over the built pages."""
    return _bound("_pages", build)


def async_download(
    build: Callable[P, Download],
) -> Callable[Concatenate[AsyncNoun, P], AsyncIterator[bytes]]:
    """Make a method of an `AsyncNoun` that iterates over the parts of a file."""
    return _bound("_download", build)


def async_upload(
    build: Callable[P, Upload[T]],
) -> Callable[Concatenate[AsyncNoun, P], Coroutine[Any, Any, T]]:
    """Make a method of an `AsyncNoun` that sends a file."""
    return _bound("_upload", build)


def async_watching(
    build: Callable[P, Watch],
) -> Callable[Concatenate[AsyncNoun, P], AsyncIterator[res.Event]]:
    """Make a method of an `AsyncNoun` that iterates over events as they come."""
    return _bound("_watch", build)


def _bound(runner: str, build: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, runner)(build(*args, **kwargs))

    run.__name__, run.__doc__ = build.__name__, build.__doc__
    signature = inspect.signature(build)
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [receiver, *signature.parameters.values()]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters, return_annotation=inspect.Signature.empty
    )
    return run
