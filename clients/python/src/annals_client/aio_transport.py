"""Makes calls from an event loop. `transport` is its twin for threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import grpc
import grpc.aio

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.bulk import AppendProgress, BulkAppend, BulkOptions
from annals_client.calls import Call, Credential, Pages
from annals_client.errors import AnnalsRpcError, UnavailableError
from annals_client.session import Session, ended_early
from annals_client.streams import Download, Upload, Watch
from annals_client.stubs import Stubs
from annals_common.channels import open_aio_channel

T = TypeVar("T")
_EOF: Any = cast("Any", grpc.aio).EOF


class AsyncTransport:
    """A pair of channels of the running event loop."""

    def __init__(self, session: Session) -> None:
        where = session.endpoints
        self._session = session
        self._channels = [open_aio_channel(where.storage, where.credentials())]
        if where.context:
            self._channels.append(open_aio_channel(where.context, where.credentials()))
        self._stubs = Stubs(self._channels[0], self._channels[-1])

    async def close(self) -> None:
        """Close the channels; running calls end as cancelled."""
        for channel in self._channels:
            await channel.close(None)

    async def unary(self, call: Call[T]) -> T:
        """Make a call, again where that is safe. Raises AnnalsRpcError."""
        attempts = self._session.attempts(call)
        while True:
            try:
                return call.pick(await self._once(call, attempts.remaining_s()))
            except grpc.RpcError as error:
                failure = self._session.error(error, call)
            await asyncio.sleep(attempts.delay_after(failure))

    async def pages(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Yield the items of a list, reading pages as they are needed."""
        left, token = pages.limit, ""
        while left is None or left > 0:
            answer = await self.unary(pages.page(token))
            items = pages.items(answer)[:left]
            for item in items:
                yield item
            left = None if left is None else left - len(items)
            token = answer.next_page_token
            if not token:
                return

    async def download(self, download: Download) -> AsyncIterator[bytes]:
        """Yield the parts of a file. Raises AnnalsRpcError."""
        attempts = self._session.attempts(download)
        metadata = self._session.metadata(download.credential)
        while True:
            begun = False
            method = download.select(self._stubs)
            stream = method(download.request, timeout=attempts.remaining_s(), metadata=metadata)
            try:
                async for answer in _answers(stream):
                    begun = True
                    yield download.pick(answer)
            except grpc.RpcError as error:
                failure = self._session.error(error, download)
            else:
                return
            finally:
                stream.cancel()
            if begun:
                raise failure
            await asyncio.sleep(attempts.delay_after(failure))

    async def upload(self, upload: Upload[T]) -> T:
        """Send a file in parts, again where that is safe. Raises AnnalsRpcError."""
        attempts = self._session.attempts(upload)
        metadata = self._session.metadata(upload.credential)
        while True:
            method = upload.select(self._stubs)
            timeout_s = attempts.remaining_s()
            try:
                with _server_cancellations():
                    answer = await method(upload.requests(), timeout=timeout_s, metadata=metadata)
                return cast("T", answer)
            except grpc.RpcError as error:
                failure = self._session.error(error, upload)
            await asyncio.sleep(attempts.delay_after(failure))

    async def watch(self, watch: Watch) -> AsyncIterator[res.Event]:
        """Yield new events, over as many streams as it takes. Raises AnnalsRpcError."""
        failure: AnnalsRpcError | None
        while True:
            metadata = self._session.metadata(Credential.API_KEY)
            method = cast("Any", self._stubs.events.WatchEvents)
            stream = method(watch.request, metadata=metadata)
            try:
                async for answer in _answers(stream):
                    for event in answer.events:
                        yield event
                    watch.reached(answer.resume_token)
                failure = None
            except grpc.RpcError as error:
                failure = self._session.watch_error(error)
            finally:
                stream.cancel()
            await asyncio.sleep(watch.resume_delay_s(failure, self._session.policy))

    async def bulk_append(
        self, batches: AsyncIterator[pb.StreamAppendEventsRequest], options: BulkOptions
    ) -> AsyncIterator[AppendProgress]:
        """Send batches, yield what is durable. Raises AnnalsRpcError."""
        failure: AnnalsRpcError
        bulk = self._session.bulk(options)
        while True:
            try:
                async for progress in self._one_stream(bulk, batches, options.timeout_s):
                    yield progress
            except grpc.RpcError as error:
                failure = self._session.stream_error(error)
            except UnavailableError as error:
                failure = error
            else:
                return
            await asyncio.sleep(bulk.resume_delay_s(failure))

    async def _one_stream(
        self,
        bulk: BulkAppend,
        batches: AsyncIterator[pb.StreamAppendEventsRequest],
        timeout_s: float,
    ) -> AsyncIterator[AppendProgress]:
        metadata = self._session.metadata(Credential.API_KEY)
        method = cast("Any", self._stubs.events.StreamAppendEvents)
        stream = method(timeout=timeout_s, metadata=metadata)
        try:
            for batch in bulk.begin_stream():
                await _write(stream, batch)
                yield bulk.acknowledged(await _read(stream))
            while await _fill(bulk, batches, stream):
                yield bulk.acknowledged(await _read(stream))
            await _finish(stream)
        finally:
            stream.cancel()

    async def _once(self, call: Call[T], timeout_s: float) -> Any:
        method = call.select(self._stubs)
        metadata = self._session.metadata(call.credential)
        with _server_cancellations():
            return await method(call.request, timeout=timeout_s, metadata=metadata)


async def _answers(stream: Any) -> AsyncIterator[Any]:
    while True:
        with _server_cancellations():
            answer = await stream.read()
        if answer is _EOF:
            return
        yield answer


async def _write(stream: Any, batch: pb.StreamAppendEventsRequest) -> None:
    try:
        with _server_cancellations():
            await stream.write(batch)
    except asyncio.InvalidStateError:
        # The stream has ended; reading from it raises the reason.
        await _read(stream)
    except grpc.aio.AioRpcError as error:
        # grpc.aio hides why a stream ended when a write notices it first. The next stream
        # begins one batch at a time, so that a read learns the reason.
        if error.code() is grpc.StatusCode.INTERNAL:
            raise ended_early() from error
        raise


async def _read(stream: Any) -> pb.StreamAppendEventsResponse:
    with _server_cancellations():
        answer = await stream.read()
    if answer is _EOF:
        raise ended_early()
    return cast("pb.StreamAppendEventsResponse", answer)


async def _finish(stream: Any) -> None:
    """Half-close and wait for the status that tells whether the server saw it whole."""
    with _server_cancellations():
        await stream.done_writing()
        while await stream.read() is not _EOF:
            pass


@contextmanager
def _server_cancellations() -> Iterator[None]:
    """Tell a call that the server cancelled from a task that was cancelled here."""
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        nothing = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(
            grpc.StatusCode.CANCELLED, nothing, nothing, "the server cancelled the call", None
        ) from None


async def _fill(
    bulk: BulkAppend, batches: AsyncIterator[pb.StreamAppendEventsRequest], stream: Any
) -> bool:
    """Send while there is room; tell whether an acknowledgement is to be waited for."""
    while bulk.has_room and (batch := await anext(batches, None)) is not None:
        bulk.sent(batch)
        await _write(stream, batch)
    return bulk.is_waiting
