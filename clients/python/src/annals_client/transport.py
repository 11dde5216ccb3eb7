"""Makes calls from threads. `aio_transport` is its twin for asyncio."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import grpc

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.bulk import AppendProgress, BulkAppend, BulkOptions
from annals_client.calls import Call, Credential, Pages
from annals_client.errors import AnnalsRpcError, UnavailableError
from annals_client.session import Session, ended_early
from annals_client.streams import Download, Upload, Watch
from annals_client.stubs import Stubs
from annals_common.channels import open_channel

T = TypeVar("T")


class Transport:
    """A pair of channels."""

    def __init__(self, session: Session) -> None:
        where = session.endpoints
        self._session = session
        self._channels = [open_channel(where.storage, where.credentials())]
        if where.context:
            self._channels.append(open_channel(where.context, where.credentials()))
        self._stubs = Stubs(self._channels[0], self._channels[-1])

    def close(self) -> None:
        """Close the channels; running calls end as cancelled."""
        for channel in self._channels:
            channel.close()

    def unary(self, call: Call[T]) -> T:
        """Make a call, again where that is safe. Raises AnnalsRpcError."""
        attempts = self._session.attempts(call)
        while True:
            try:
                return call.pick(self._once(call, attempts.remaining_s()))
            except grpc.RpcError as error:
                failure = self._session.error(error, call)
            time.sleep(attempts.delay_after(failure))

    def pages(self, pages: Pages[T]) -> Iterator[T]:
        """Yield the items of a list, reading pages as they are needed."""
        left, token = pages.limit, ""
        while left is None or left > 0:
            answer = self.unary(pages.page(token))
            items = pages.items(answer)[:left]
            yield from items
            left = None if left is None else left - len(items)
            token = answer.next_page_token
            if not token:
                return

    def download(self, download: Download) -> Iterator[bytes]:
        """Yield the parts of a file. Raises AnnalsRpcError."""
        attempts = self._session.attempts(download)
        metadata = self._session.metadata(download.credential)
        while True:
            begun = False
            method = download.select(self._stubs)
            stream = method(download.request, timeout=attempts.remaining_s(), metadata=metadata)
            try:
                for answer in stream:
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
            time.sleep(attempts.delay_after(failure))

    def upload(self, upload: Upload[T]) -> T:
        """Send a file in parts, again where that is safe. Raises AnnalsRpcError."""
        attempts = self._session.attempts(upload)
        metadata = self._session.metadata(upload.credential)
        while True:
            method = upload.select(self._stubs)
            try:
                return cast(
                    "T",
                    method(upload.requests(), timeout=attempts.remaining_s(), metadata=metadata),
                )
            except grpc.RpcError as error:
                failure = self._session.error(error, upload)
            time.sleep(attempts.delay_after(failure))

    def watch(self, watch: Watch) -> Iterator[res.Event]:
        """Yield new events, over as many streams as it takes. Raises AnnalsRpcError."""
        failure: AnnalsRpcError | None
        while True:
            metadata = self._session.metadata(Credential.API_KEY)
            stream: Any = self._stubs.events.WatchEvents(watch.request, metadata=metadata)
            try:
                for answer in stream:
                    yield from answer.events
                    watch.reached(answer.resume_token)
                failure = None
            except grpc.RpcError as error:
                failure = self._session.watch_error(error)
            finally:
                stream.cancel()
            time.sleep(watch.resume_delay_s(failure, self._session.policy))

    def bulk_append(
        self, batches: Iterator[pb.StreamAppendEventsRequest], options: BulkOptions
    ) -> Iterator[AppendProgress]:
        """Send batches, yield what is durable. Raises AnnalsRpcError."""
        failure: AnnalsRpcError
        bulk = self._session.bulk(options)
        while True:
            try:
                return (yield from self._one_stream(bulk, batches, options.timeout_s))
            except grpc.RpcError as error:
                failure = self._session.stream_error(error)
            except UnavailableError as error:
                failure = error
            time.sleep(bulk.resume_delay_s(failure))

    def _one_stream(
        self,
        bulk: BulkAppend,
        batches: Iterator[pb.StreamAppendEventsRequest],
        timeout_s: float,
    ) -> Iterator[AppendProgress]:
        outbox: queue.SimpleQueue[pb.StreamAppendEventsRequest | None] = queue.SimpleQueue()
        metadata = self._session.metadata(Credential.API_KEY)
        method = cast("Any", self._stubs.events.StreamAppendEvents)
        stream = method(iter(outbox.get, None), timeout=timeout_s, metadata=metadata)
        try:
            for batch in bulk.begin_stream():
                outbox.put(batch)
                yield bulk.acknowledged(_next(stream))
            while _fill(bulk, batches, outbox):
                yield bulk.acknowledged(_next(stream))
            outbox.put(None)
            # The status that ends the stream tells whether the server saw it whole.
            list(stream)
        finally:
            outbox.put(None)
            stream.cancel()

    def _once(self, call: Call[T], timeout_s: float) -> Any:
        method = call.select(self._stubs)
        metadata = self._session.metadata(call.credential)
        return method(call.request, timeout=timeout_s, metadata=metadata)


def _next(stream: Iterator[pb.StreamAppendEventsResponse]) -> pb.StreamAppendEventsResponse:
    answer = next(stream, None)
    if answer is None:
        raise ended_early()
    return answer


def _fill(
    bulk: BulkAppend,
    batches: Iterator[pb.StreamAppendEventsRequest],
    outbox: queue.SimpleQueue[pb.StreamAppendEventsRequest | None],
) -> bool:
    """Send while there is room; tell whether an acknowledgement is to be waited for."""
    while bulk.has_room and (batch := next(batches, None)) is not None:
        bulk.sent(batch)
        outbox.put(batch)
    return bulk.is_waiting
