"""Conversations: created, read, listed, changed, ended, hidden and brought back."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
from tests.support.raw import Raw, failure
from tests.support.storage import Tenant

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import user


def conversation(**fields: Any) -> res.Conversation:
    metadata = fields.pop("metadata", None)
    message = res.Conversation(**fields)
    if metadata is not None:
        message.metadata.update(metadata)
    return message


async def create(raw: Raw, *, request_id: str = "", **fields: Any) -> res.Conversation:
    request = pb.CreateConversationRequest(
        conversation=conversation(**fields), request_id=request_id
    )
    return (await raw.call("CreateConversation", request)).conversation


async def update(raw: Raw, *paths: str, **fields: Any) -> res.Conversation:
    request = pb.UpdateConversationRequest(conversation=conversation(**fields))
    request.update_mask.paths.extend(paths)
    return (await raw.call("UpdateConversation", request)).conversation


async def get(raw: Raw, conversation_id: str) -> res.Conversation:
    request = pb.GetConversationRequest(conversation_id=conversation_id)
    return (await raw.call("GetConversation", request)).conversation


class TestCreate:
    async def test_returns_what_was_given_and_fresh_counters(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("helper")
        context = res.ClientContext(
            page_url="https://shop.example/a?b=ü", referrer="r", user_agent="u", locale="de-CH",
            timezone="Europe/Zurich",
        )  # fmt: skip
        context.custom.update({"deep": {"list": [1, 2.5, None, True, "日本"]}})

        made = await create(
            tenant.raw,
            agent_id=agent.agent_id,
            user_id="u-1",
            title="Où est ma commande? 🚚",
            client_context=context,
            metadata={"a": {"b": [1, {}]}},
        )

        assert made == await get(tenant.raw, made.conversation_id)
        assert UUID(made.conversation_id).version == 7
        assert (made.agent_id, made.user_id, made.session_id) == (agent.agent_id, "u-1", "")
        assert made.title == "Où est ma commande? 🚚"
        assert made.client_context == context
        assert made.metadata["a"]["b"][0] == 1
        assert made.status == res.CONVERSATION_STATUS_ACTIVE
        assert (made.last_seq, made.event_count, made.message_count, made.token_count) == (0,) * 4
        assert made.version == 1
        assert made.HasField("create_time")
        assert made.HasField("update_time")
        assert not made.HasField("last_event_time")
        assert not made.HasField("end_time")
        assert not made.HasField("delete_time")

    async def test_keeps_a_client_supplied_id(self, tenant: Tenant) -> None:
        wanted = str(uuid4())

        made = await create(tenant.raw, conversation_id=wanted, title="mine")

        assert made.conversation_id == wanted

    async def test_of_an_id_with_the_same_content_is_a_retry(self, tenant: Tenant) -> None:
        wanted = str(uuid4())
        first = await create(tenant.raw, conversation_id=wanted, title="mine")

        assert await create(tenant.raw, conversation_id=wanted, title="mine") == first

    @pytest.mark.parametrize("request_id", ["", "new"])
    async def test_of_an_id_with_other_content_is_refused(
        self, tenant: Tenant, request_id: str
    ) -> None:
        wanted = str(uuid4())
        first = await create(tenant.raw, conversation_id=wanted, title="mine")

        refused = await failure(
            create(
                tenant.raw,
                conversation_id=wanted,
                title="other",
                request_id=str(uuid4()) if request_id else "",
            )
        )

        assert refused.code is grpc.StatusCode.ALREADY_EXISTS
        assert refused.reason == "RESOURCE_ALREADY_EXISTS"
        assert refused.metadata == (("id", wanted), ("resource", "conversation"))
        assert await get(tenant.raw, wanted) == first

    async def test_with_the_same_request_id_returns_the_first(self, tenant: Tenant) -> None:
        request_id = str(uuid4())
        first = await create(tenant.raw, title="once", request_id=request_id)

        again = await create(tenant.raw, title="once", request_id=request_id)

        assert again == first
        assert len([c async for c in tenant.client.conversations.list()]) == 1

    @pytest.mark.parametrize("supplied", [False, True], ids=["assigned id", "another client id"])
    async def test_with_a_used_request_id_and_other_content_is_refused(
        self, tenant: Tenant, supplied: bool
    ) -> None:
        request_id = str(uuid4())
        mine = {"conversation_id": str(uuid4())} if supplied else {}
        other = {"conversation_id": str(uuid4())} if supplied else {}
        await create(tenant.raw, title="once", request_id=request_id, **mine)

        refused = await failure(create(tenant.raw, title="2", request_id=request_id, **other))

        assert refused.code is grpc.StatusCode.FAILED_PRECONDITION
        assert refused.reason == "IDEMPOTENCY_KEY_REUSED"
        assert len([c async for c in tenant.client.conversations.list()]) == 1

    async def test_for_a_user_and_a_session_at_once_is_refused(self, tenant: Tenant) -> None:
        refused = await failure(create(tenant.raw, user_id="u", session_id="s"))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("conversation.session_id",))

    async def test_with_an_unknown_agent_is_refused(self, tenant: Tenant) -> None:
        agent_id = str(uuid4())

        refused = await failure(create(tenant.raw, agent_id=agent_id))

        assert refused.reason == "RESOURCE_NOT_FOUND"
        assert refused.metadata == (("id", agent_id), ("resource", "agent"))


class TestHostIds:
    async def test_name_a_conversation(self, tenant: Tenant) -> None:
        made = await create(tenant.raw, host_conversation_id="chat-17 ✓", title="mine")
        other = await create(tenant.raw, conversation_id=str(uuid4()), host_conversation_id="b")

        assert made.host_conversation_id == "chat-17 ✓"
        assert await get_by_host_id(tenant.raw, "chat-17 ✓") == made
        assert await get_by_host_id(tenant.raw, "b") == other

    async def test_with_the_same_content_are_a_retry(self, tenant: Tenant) -> None:
        fields = {"host_conversation_id": "h", "org_id": "o", "title": "mine"}
        first = await create(tenant.raw, **fields)

        assert await create(tenant.raw, **fields) == first
        assert await create(tenant.raw, request_id=str(uuid4()), **fields) == first

    @pytest.mark.parametrize(
        "other",
        [
            {"title": "other"},
            {"org_id": "o"},
            {"provider_conversation_id": "p"},
            {"conversation_id": str(uuid4())},
        ],
        ids=["title", "organisation", "provider's id", "id"],
    )
    async def test_with_other_content_are_refused(
        self, tenant: Tenant, other: dict[str, str]
    ) -> None:
        first = await create(tenant.raw, host_conversation_id="h")

        refused = await failure(create(tenant.raw, host_conversation_id="h", **other))

        assert refused.reason == "RESOURCE_ALREADY_EXISTS"
        assert await get_by_host_id(tenant.raw, "h") == first

    async def test_are_each_tenants_own(self, tenant: Tenant, other_tenant: Tenant) -> None:
        mine = await create(tenant.raw, host_conversation_id="h")
        theirs = await create(other_tenant.raw, host_conversation_id="h")

        assert mine.conversation_id != theirs.conversation_id
        assert await get_by_host_id(tenant.raw, "h") == mine

    async def test_missing_or_deleted_are_not_found(self, tenant: Tenant) -> None:
        made = await create(tenant.raw, host_conversation_id="gone")
        await tenant.client.conversations.delete(made.conversation_id)

        for host_id in ("gone", "never"):
            refused = await failure(get_by_host_id(tenant.raw, host_id))
            assert refused.metadata == (("id", host_id), ("resource", "conversation"))

    async def test_stand_alone(self, tenant: Tenant) -> None:
        request = pb.GetConversationRequest(conversation_id=str(uuid4()), host_conversation_id="h")

        refused = await failure(tenant.raw.call("GetConversation", request))

        assert refused.fields == ("host_conversation_id",)


async def get_by_host_id(raw: Raw, host_id: str) -> res.Conversation:
    request = pb.GetConversationRequest(host_conversation_id=host_id)
    return (await raw.call("GetConversation", request)).conversation


class TestArchive:
    async def test_puts_a_conversation_away(self, tenant: Tenant) -> None:
        stored = await tenant.client.events.append("", user("the heron"))
        archived = await archive(tenant.raw, stored.conversation_id)

        refused = await failure(append_hello(tenant.raw, stored.conversation_id))

        assert archived.status == res.CONVERSATION_STATUS_ARCHIVED
        assert archived.HasField("archive_time")
        assert archived.HasField("end_time")
        assert (refused.reason, dict(refused.metadata)["status"]) == (
            "CONVERSATION_NOT_ACTIVE",
            "ARCHIVED",
        )
        found = await tenant.client.search.events(
            "the heron",
            conversation_ids=[stored.conversation_id],
            freshness="read-your-writes",
        )
        assert [hit.event.conversation_id for hit in found.hits] == [stored.conversation_id]

    async def test_twice_is_no_error(self, tenant: Tenant) -> None:
        made = await create(tenant.raw)
        first = await archive(tenant.raw, made.conversation_id)

        assert await archive(tenant.raw, made.conversation_id) == first

    async def test_survives_an_end_and_goes_with_activity(self, tenant: Tenant) -> None:
        made = await create(tenant.raw)
        archived = await archive(tenant.raw, made.conversation_id)

        ended = await tenant.client.conversations.end(made.conversation_id, summary="Sorted.")
        active = await update(
            tenant.raw, "status",
            conversation_id=made.conversation_id, status=res.CONVERSATION_STATUS_ACTIVE,
        )  # fmt: skip

        assert ended.status == res.CONVERSATION_STATUS_ARCHIVED
        assert ended.archive_time == archived.archive_time
        assert not active.HasField("archive_time")
        assert not active.HasField("end_time")

    @pytest.mark.parametrize("gone", ["missing", "deleted"])
    async def test_of_what_is_gone_is_not_found(self, tenant: Tenant, gone: str) -> None:
        made = await create(tenant.raw)
        await tenant.client.conversations.delete(made.conversation_id)
        wanted = made.conversation_id if gone == "deleted" else str(uuid4())

        refused = await failure(archive(tenant.raw, wanted))

        assert refused.metadata == (("id", wanted), ("resource", "conversation"))


async def archive(raw: Raw, conversation_id: str) -> res.Conversation:
    request = pb.ArchiveConversationRequest(conversation_id=conversation_id)
    return (await raw.call("ArchiveConversation", request)).conversation


class TestCurrent:
    async def current(self, tenant: Tenant, **query: str) -> str:
        request = pb.GetCurrentConversationRequest(**query)
        found = await tenant.raw.call("GetCurrentConversation", request)
        return str(found.conversation.title)

    async def test_is_the_last_active_that_takes_events(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("a")
        first = await create(tenant.raw, user_id="u", title="first", agent_id=agent.agent_id)
        await create(tenant.raw, user_id="u", title="second")
        ended = await create(tenant.raw, user_id="u", title="ended")
        await tenant.client.conversations.end(ended.conversation_id)
        deleted = await create(tenant.raw, user_id="u", title="deleted")
        await tenant.client.conversations.delete(deleted.conversation_id)
        await create(tenant.raw, session_id="u", title="a session's")

        assert await self.current(tenant, user_id="u") == "second"
        assert await self.current(tenant, user_id="u", agent_id=agent.agent_id) == "first"
        assert await self.current(tenant, session_id="u") == "a session's"
        await tenant.client.events.append(first.conversation_id, user("on"))
        assert await self.current(tenant, user_id="u") == "first"

    async def test_of_nobody_is_refused(self, tenant: Tenant) -> None:
        refused = await failure(self.current(tenant))

        assert refused.fields == ("user_id",)

    @pytest.mark.parametrize("query", [{"user_id": "x"}, {"session_id": "x"}])
    async def test_where_there_is_none_is_not_found(
        self, tenant: Tenant, query: dict[str, str]
    ) -> None:
        refused = await failure(self.current(tenant, **query))

        assert refused.reason == "RESOURCE_NOT_FOUND"


class TestUpdate:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("user_id", "someone"),
            ("session_id", "somewhere"),
            ("title", "renamed ✓"),
            ("org_id", "an organisation"),
            ("provider_conversation_id", "conv_1"),
            ("last_response_id", "resp_1"),
            ("status", res.CONVERSATION_STATUS_ARCHIVED),
            ("client_context", res.ClientContext(locale="fr")),
            ("metadata", {"k": [1, "two"]}),
        ],
    )
    async def test_changes_the_named_field_alone(
        self, tenant: Tenant, path: str, value: Any
    ) -> None:
        made = await create(tenant.raw, title="before", metadata={"k": "before"})

        changed = await update(
            tenant.raw, path, conversation_id=made.conversation_id, **{path: value}
        )

        assert changed == await get(tenant.raw, made.conversation_id)
        assert changed.version == made.version + 1
        expected = conversation(**{path: value})
        assert getattr(changed, path) == getattr(expected, path)
        changed_fields = {f.name for f, _ in changed.ListFields()} | {
            f.name for f, _ in made.ListFields()
        }
        untouched = changed_fields - {path, "version", "update_time", "end_time", "archive_time"}
        assert {n: getattr(changed, n) for n in untouched} == {
            n: getattr(made, n) for n in untouched
        }

    async def test_moves_it_to_another_agent_and_away(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("helper")
        made = await create(tenant.raw)

        moved = await update(
            tenant.raw, "agent_id", conversation_id=made.conversation_id, agent_id=agent.agent_id
        )
        cleared = await update(tenant.raw, "agent_id", conversation_id=made.conversation_id)

        assert moved.agent_id == agent.agent_id
        assert cleared.agent_id == ""

    async def test_to_an_unknown_agent_is_refused(self, tenant: Tenant) -> None:
        made = await create(tenant.raw)

        refused = await failure(
            update(
                tenant.raw, "agent_id", conversation_id=made.conversation_id, agent_id=str(uuid4())
            )
        )

        assert refused.reason == "RESOURCE_NOT_FOUND"
        assert await get(tenant.raw, made.conversation_id) == made

    async def test_clears_what_is_named_and_empty(self, tenant: Tenant) -> None:
        made = await create(tenant.raw, title="t", user_id="u", metadata={"a": 1})

        cleared = await update(
            tenant.raw, "title", "user_id", "metadata", conversation_id=made.conversation_id
        )

        assert (cleared.title, cleared.user_id, len(cleared.metadata)) == ("", "", 0)

    async def test_with_the_version_read_succeeds_once(self, tenant: Tenant) -> None:
        made = await create(tenant.raw)
        ours = {"conversation_id": made.conversation_id, "version": made.version}
        first = await update(tenant.raw, "title", title="first", **ours)

        refused = await failure(update(tenant.raw, "title", title="second", **ours))

        assert refused.code is grpc.StatusCode.ABORTED
        assert refused.reason == "VERSION_MISMATCH"
        assert refused.metadata == (("expected_version", "1"), ("version", "2"))
        assert await get(tenant.raw, made.conversation_id) == first

    @pytest.mark.parametrize("paths", [(), ("tenant_id",), ("title", "version"), ("next_seq",)])
    async def test_of_other_fields_is_refused(self, tenant: Tenant, paths: tuple[str, ...]) -> None:
        made = await create(tenant.raw)

        refused = await failure(
            update(tenant.raw, *paths, conversation_id=made.conversation_id, title="x")
        )

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("update_mask",))
        assert await get(tenant.raw, made.conversation_id) == made

    async def test_to_no_status_is_refused(self, tenant: Tenant) -> None:
        made = await create(tenant.raw)

        refused = await failure(update(tenant.raw, "status", conversation_id=made.conversation_id))

        assert refused.fields == ("conversation.status",)

    @pytest.mark.parametrize("stored", [{}, {"session_id": "s"}], ids=["both given", "one stored"])
    async def test_never_leaves_a_user_and_a_session(
        self, tenant: Tenant, stored: dict[str, str]
    ) -> None:
        made = await create(tenant.raw, **stored)
        paths = ("user_id",) if stored else ("user_id", "session_id")

        refused = await failure(
            update(
                tenant.raw, *paths,
                conversation_id=made.conversation_id, user_id="u", session_id="s",
            )
        )  # fmt: skip

        assert refused.reason == "FIELD_INVALID"
        assert await get(tenant.raw, made.conversation_id) == made

    async def test_of_an_ended_conversation_to_active_lets_it_take_events_again(
        self, tenant: Tenant
    ) -> None:
        made = await create(tenant.raw)
        await tenant.client.conversations.end(made.conversation_id)

        reopened = await update(
            tenant.raw,
            "status",
            conversation_id=made.conversation_id,
            status=res.CONVERSATION_STATUS_ACTIVE,
        )
        stored = await tenant.client.events.append(made.conversation_id, user("again"))

        assert not reopened.HasField("end_time")
        assert stored.last_seq == 1


class TestEnd:
    async def test_completes_and_keeps_the_summary(self, tenant: Tenant) -> None:
        made = await create(tenant.raw)

        ended = await tenant.client.conversations.end(made.conversation_id, summary="Sorted.")

        assert ended.status == res.CONVERSATION_STATUS_COMPLETED
        assert ended.end_summary == "Sorted."
        assert ended.HasField("end_time")
        assert ended.version == made.version + 1

    async def test_twice_keeps_the_first_end(self, tenant: Tenant) -> None:
        made = await create(tenant.raw)
        first = await tenant.client.conversations.end(made.conversation_id, summary="Sorted.")

        again = await tenant.client.conversations.end(made.conversation_id)

        assert again == first

    async def test_refuses_events_from_then_on(self, tenant: Tenant) -> None:
        made = await create(tenant.raw)
        await tenant.client.conversations.end(made.conversation_id)

        refused = await failure(append_hello(tenant.raw, made.conversation_id))

        assert refused.code is grpc.StatusCode.FAILED_PRECONDITION
        assert refused.reason == "CONVERSATION_NOT_ACTIVE"
        assert refused.metadata == (
            ("conversation_id", made.conversation_id),
            ("status", "COMPLETED"),
        )
        assert (await get(tenant.raw, made.conversation_id)).event_count == 0


async def append_hello(raw: Raw, conversation_id: str) -> Any:
    from annals.storage.v1 import event_service_pb2 as event_pb

    request = event_pb.AppendEventsRequest(conversation_id=conversation_id, events=[user("hello")])
    return await raw.call("AppendEvents", request)


class TestDeleteAndRestore:
    async def test_hides_a_conversation_and_its_events(self, tenant: Tenant) -> None:
        client = tenant.client
        stored = await client.events.append("", [user("the lost umbrella")])
        conversation_id, event_id = stored.conversation_id, stored.events[0].event_id

        deleted = await client.conversations.delete(conversation_id)

        assert deleted.HasField("delete_time")
        assert [c async for c in client.conversations.list()] == []
        shown = [c async for c in client.conversations.list(show_deleted=True)]
        assert [c.conversation_id for c in shown] == [conversation_id]
        assert (await client.events.batch_get([event_id])).missing_event_ids == [event_id]
        found = await client.search.events("the lost umbrella")
        assert list(found.hits) == []

    @pytest.mark.parametrize(
        ("name", "fields"),
        [
            ("GetConversation", {}),
            ("EndConversation", {}),
            ("ListEvents", {}),
            ("ListEvents", {"all_branches": True}),
            ("GetEvent", {"seq": 1}),
            ("AppendEvents", {"events": [user("late")]}),
        ],
    )
    async def test_a_deleted_conversation_answers_like_a_missing_one(
        self, tenant: Tenant, name: str, fields: dict[str, Any]
    ) -> None:
        from google.protobuf.message_factory import GetMessageClass
        from tests.support.raw import methods

        stored = await tenant.client.events.append("", [user("gone")])
        await tenant.client.conversations.delete(stored.conversation_id)
        request = GetMessageClass(methods()[name].input_type)
        ids = (stored.conversation_id, str(uuid4()))

        deleted, missing = [
            await failure(tenant.raw.call(name, request(conversation_id=one, **fields)))
            for one in ids
        ]

        assert deleted.reason == "RESOURCE_NOT_FOUND"
        assert deleted.without(*ids) == missing.without(*ids)

    async def test_twice_is_no_error_and_changes_nothing(self, tenant: Tenant) -> None:
        made = await create(tenant.raw)
        first = await tenant.client.conversations.delete(made.conversation_id)

        assert await tenant.client.conversations.delete(made.conversation_id) == first

    async def test_restored_is_as_before(self, tenant: Tenant) -> None:
        client = tenant.client
        stored = await client.events.append("", [user("back again")])
        before = await client.conversations.get(stored.conversation_id)
        await client.conversations.delete(stored.conversation_id)

        restored = await client.conversations.restore(stored.conversation_id)
        twice = await client.conversations.restore(stored.conversation_id)

        assert restored == twice == await client.conversations.get(stored.conversation_id)
        assert not restored.HasField("delete_time")
        assert restored.version > before.version
        assert (await client.events.get(stored.events[0].event_id)).message.content == "back again"
        appended = await client.events.append(stored.conversation_id, user("and on"))
        assert appended.last_seq == 2
