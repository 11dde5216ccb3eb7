"""Watches, exports and imports: what is sent again, what is not, and what nobody sees twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import (
    AnnalsClient,
    AsyncAnnalsClient,
    ImportInvalidError,
    NotFoundError,
    UnavailableError,
)
from annals_common import errors as server_errors

GONE = server_errors.DependencyUnavailableError("postgresql")
MISSING = server_errors.ResourceNotFoundError("conversation", "c1")


def page(token: str, *seqs: int) -> pb.WatchEventsResponse:
    events = [res.Event(event_id=f"e{seq}", seq=seq) for seq in seqs]
    return pb.WatchEventsResponse(events=events, resume_token=token)


async def watched(call: Any, **options: Any) -> tuple[list[int], Exception]:
    """The positions that a watch gave until it ended by an error."""
    seqs: list[int] = []

    def use(client: AnnalsClient | AsyncAnnalsClient) -> Any:
        events: Any = client.events.watch("c1", **options)
        if isinstance(client, AnnalsClient):
            for event in events:
                seqs.append(event.seq)  # noqa: PERF401 - what came before the error counts
            return None
        return collect(events)

    async def collect(events: Any) -> None:
        async for event in events:
            seqs.append(event.seq)  # noqa: PERF401 - as above

    with pytest.raises(Exception) as raised:  # noqa: PT011 - the caller looks at it
        await call(use)
    return seqs, raised.value


class TestWatch:
    async def test_resumes_where_it_was(self, server: Any, call: Any) -> None:
        server.answer(
            "WatchEvents",
            [page("t0"), page("t1", 1, 2), GONE],
            [page("t1"), page("t2", 3)],
            [page("t3", 4), server_errors.WatcherTooSlowError()],
            [page("t4", 5), MISSING],
        )
        told: list[str] = []

        seqs, ended = await watched(call, after_seq=0, on_resume_token=told.append)

        assert seqs == [1, 2, 3, 4, 5]
        assert isinstance(ended, NotFoundError)
        assert told == ["t0", "t1", "t2", "t3", "t4"]
        asked = [item.request for item in server.received["WatchEvents"]]
        assert [request.resume_token for request in asked] == ["", "t1", "t2", "t3"]
        assert [request.HasField("after_seq") for request in asked] == [True, False, False, False]

    async def test_a_final_failure_is_raised_at_once(self, server: Any, call: Any) -> None:
        server.answer("WatchEvents", [MISSING])

        seqs, ended = await watched(call)

        assert (seqs, type(ended), len(server.received["WatchEvents"])) == ([], NotFoundError, 1)

    async def test_gives_up_after_its_time_without_a_connection(
        self, server: Any, call: Any
    ) -> None:
        server.answer("WatchEvents", *([[page("t1", 1), GONE]] + [[GONE]] * 200))

        seqs, ended = await watched(call, timeout=1.2)

        assert seqs == [1]
        assert isinstance(ended, UnavailableError)

    async def test_goes_on_from_a_kept_token(self, server: Any, call: Any) -> None:
        server.answer("WatchEvents", [MISSING])

        await watched(call, resume_token="kept")

        assert server.received["WatchEvents"][0].request.resume_token == "kept"


def part(data: bytes) -> conversation_pb.ExportConversationResponse:
    return conversation_pb.ExportConversationResponse(data=data)


class TestExport:
    async def test_yields_the_parts(self, server: Any, call: Any) -> None:
        server.answer("ExportConversation", [part(b"a"), part(b"b")])

        assert await call(lambda client: client.conversations.export("c1", form="csv")) == [
            b"a",
            b"b",
        ]
        request = server.received["ExportConversation"][0].request
        assert request.format == conversation_pb.EXPORT_FORMAT_CSV

    async def test_begins_again_before_the_first_part_only(self, server: Any, call: Any) -> None:
        server.answer("ExportConversation", [GONE], [part(b"a"), GONE], [part(b"a"), part(b"b")])

        with pytest.raises(UnavailableError):
            await call(lambda client: client.conversations.export("c1"))

        assert len(server.received["ExportConversation"]) == 2


class TestImport:
    async def test_a_file_is_sent_again(self, server: Any, call: Any, tmp_path: Any) -> None:
        path = tmp_path / "chat.jsonl"
        path.write_bytes(b"x" * 600_000)
        answer = conversation_pb.ImportConversationsResponse(event_count=2)
        server.answer("ImportConversations", GONE, answer)

        assert await call(lambda client: client.conversations.import_file(path)) == answer
        for received in server.received["ImportConversations"]:
            assert [len(item.data) for item in received.request] == [524_288, 75_712]

    async def test_parts_are_sent_once(self, server: Any, call: Any) -> None:
        server.answer("ImportConversations", GONE)

        with pytest.raises(UnavailableError):
            await call(lambda client: client.conversations.import_file(iter([b"a", b"b"])))

        assert len(server.received["ImportConversations"]) == 1

    async def test_a_bad_line_is_named(self, server: Any, call: Any) -> None:
        server.answer("ImportConversations", server_errors.ImportInvalidError("is cut", line=7))

        with pytest.raises(ImportInvalidError) as raised:
            await call(lambda client: client.conversations.import_file([b"a"]))

        assert raised.value.line == 7


async def test_the_end_user_travels_with_the_tenants_key_alone(server: Any) -> None:
    server.answer("GetEvent", pb.GetEventResponse())
    server.answer("GetTenant", server_errors.CredentialsInvalidError())

    def use() -> None:
        with AnnalsClient(
            server.address, api_key="k", admin_key="a", session_id="s", user_id="u", user_token="t"
        ) as client:
            client.events.get("e1")
            with pytest.raises(Exception, match="CREDENTIALS_INVALID"):
                client.tenants.get("t1")

    await asyncio.to_thread(use)

    sent = server.received["GetEvent"][0].metadata
    names = ("annals-session-id", "annals-user-id", "annals-user-token")
    assert [sent.get(name) for name in names] == ["s", "u", "t"]
    administrators = server.received["GetTenant"][0].metadata
    assert not administrators.keys() & set(names)


def test_a_user_id_that_no_metadata_carries_is_refused() -> None:
    with pytest.raises(Exception, match="user_id"):
        AnnalsClient("localhost:1", user_id="Zo\xeb")


def test_a_user_token_never_shows() -> None:
    with AnnalsClient("localhost:1", user_token="eyJ.secret") as client:
        assert "eyJ" not in repr(client)
