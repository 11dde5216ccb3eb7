"""End users: who they are taken for, what they may set, what they are shown of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import grpc
import pytest
from tests.support.appending import append
from tests.support.end_users import (
    Metadata,
    Signer,
    create_agent,
    create_signer,
    metadata_of,
    publishable_key,
)
from tests.support.raw import failure
from tests.support.storage import ADMIN_KEY, Tenant

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as tenant_pb
from annals_client import assistant, tool_call, user

ALICE, BOB, SESSION = "alice", "bob", "session-1"


@dataclass(frozen=True, slots=True)
class Site:
    """A tenant, a trusting agent of it and that agent's publishable key."""

    tenant: Tenant
    agent_id: str
    secret: str
    signer: Signer

    def as_(self, *, token_of: str | None = None, **end_user: Any) -> Metadata:
        """Metadata of an end user with the publishable key."""
        token = None if token_of is None else self.signer.sign(token_of)
        return metadata_of(self.secret, token=token, **end_user)

    def served(self, *, token_of: str | None = None, **end_user: Any) -> Metadata:
        """Metadata of an end user with the secret key."""
        token = None if token_of is None else self.signer.sign(token_of)
        return metadata_of(self.tenant.api_key, token=token, **end_user)

    async def create(self, metadata: Metadata, **fields: Any) -> res.Conversation:
        request = pb.CreateConversationRequest(conversation=res.Conversation(**fields))
        call = self.tenant.raw.call("CreateConversation", request, metadata=metadata)
        return (await call).conversation

    async def list(self, metadata: Metadata, **query: Any) -> list[str]:
        request = pb.ListConversationsRequest(**query)
        found = await self.tenant.raw.call("ListConversations", request, metadata=metadata)
        return [item.title for item in found.conversations]

    async def append(self, metadata: Metadata, room: str, *events: Any) -> Any:
        request = event_pb.AppendEventsRequest(conversation_id=room, events=events)
        return await self.tenant.raw.call("AppendEvents", request, metadata=metadata)


@pytest.fixture
async def site(tenant: Tenant) -> Site:
    agent_id = await create_agent(tenant)
    secret = await publishable_key(tenant, agent_id)
    return Site(tenant, agent_id, secret, await create_signer(tenant))


class TestPublishableKeys:
    async def test_can_be_told_from_secret_ones(self, site: Site) -> None:
        request = tenant_pb.ListApiKeysRequest()
        keys = (await site.tenant.raw.call("ListApiKeys", request)).api_keys

        assert site.secret.startswith("annals_pk_")
        assert not site.tenant.api_key.startswith("annals_pk_")
        assert [(key.kind, key.agent_id, list(key.scopes)) for key in keys] == [
            (
                res.API_KEY_KIND_SECRET,
                "",
                [res.API_KEY_SCOPE_DATA, res.API_KEY_SCOPE_TENANT_ADMIN],
            ),
            (res.API_KEY_KIND_PUBLISHABLE, site.agent_id, []),
        ]

    async def test_say_whom_a_call_is_for(self, site: Site) -> None:
        caller = await site.tenant.raw.call(
            "GetCaller", metadata=site.as_(session_id=SESSION, user_id=ALICE)
        )

        assert caller.kind == res.API_KEY_KIND_PUBLISHABLE
        assert caller.tenant_id == site.tenant.tenant_id
        assert (caller.agent_id, caller.session_id, caller.user_id) == (
            site.agent_id,
            SESSION,
            ALICE,
        )
        assert not caller.user_verified

    async def test_are_revoked_at_once(self, site: Site) -> None:
        caller = await site.tenant.raw.call("GetCaller", metadata=site.as_(session_id=SESSION))
        await site.tenant.client.keys.revoke(caller.api_key_id)

        refused = await failure(
            site.tenant.raw.call("GetCaller", metadata=site.as_(session_id=SESSION))
        )

        assert refused.reason == "CREDENTIALS_INVALID"

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"kind": res.API_KEY_KIND_PUBLISHABLE}, "agent_id"),
            ({"kind": 99, "scopes": [res.API_KEY_SCOPE_DATA]}, "kind"),
            (
                {
                    "kind": res.API_KEY_KIND_PUBLISHABLE,
                    "agent_id": str(uuid4()),
                    "scopes": [res.API_KEY_SCOPE_DATA],
                },
                "scopes",
            ),
            ({"agent_id": str(uuid4()), "scopes": [res.API_KEY_SCOPE_DATA]}, "agent_id"),
            ({}, "scopes"),
        ],
        ids=["no agent", "unknown kind", "scopes", "secret with an agent", "secret without scopes"],
    )
    async def test_that_make_no_sense_are_refused(
        self, tenant: Tenant, fields: dict[str, Any], field: str
    ) -> None:
        request = tenant_pb.CreateApiKeyRequest(**fields)

        refused = await failure(tenant.raw.call("CreateApiKey", request))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))

    async def test_of_an_unknown_agent_are_refused(self, tenant: Tenant) -> None:
        agent_id = str(uuid4())

        refused = await failure(publishable_key(tenant, agent_id))

        assert refused.metadata == (("id", agent_id), ("resource", "agent"))

    @pytest.mark.parametrize("kind", ["publishable", "secret"])
    @pytest.mark.parametrize("name", ["GetAgent", "ListAgents"])
    async def test_never_read_an_agents_prompt(self, site: Site, name: str, kind: str) -> None:
        metadata = (site.as_ if kind == "publishable" else site.served)(session_id=SESSION)
        request = (
            tenant_pb.GetAgentRequest(agent_id=site.agent_id)
            if name == "GetAgent"
            else tenant_pb.ListAgentsRequest()
        )

        refused = await failure(site.tenant.raw.call(name, request, metadata=metadata))

        assert (refused.code, refused.reason) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "SCOPE_MISSING",
        )


class TestMetadata:
    @pytest.mark.parametrize("key", ["annals-session-id", "annals-user-id"])
    @pytest.mark.parametrize("value", ["", "x" * 257], ids=["empty", "long"])
    @pytest.mark.parametrize("kind", ["publishable", "secret"])
    async def test_is_bounded(self, site: Site, key: str, value: str, kind: str) -> None:
        secret = site.secret if kind == "publishable" else site.tenant.api_key
        metadata = (*metadata_of(secret), (key, value))

        refused = await failure(site.tenant.raw.call("ListConversations", metadata=metadata))

        assert refused.fields == (key,)

    @pytest.mark.parametrize("key", ["annals-session-id", "annals-user-id"])
    async def test_sent_twice_is_refused(self, site: Site, key: str) -> None:
        metadata = (*metadata_of(site.secret), (key, "a"), (key, "b"))

        refused = await failure(site.tenant.raw.call("GetCaller", metadata=metadata))

        assert refused.fields == (key,)

    async def test_is_not_for_the_installations_key(self, site: Site) -> None:
        metadata = metadata_of(ADMIN_KEY, user_id=ALICE)

        refused = await failure(site.tenant.raw.call("ListTenants", metadata=metadata))

        assert refused.fields == ("annals-user-id",)

    async def test_is_looked_at_after_the_key(self, site: Site) -> None:
        metadata = metadata_of(site.secret + "x", session_id="")

        refused = await failure(site.tenant.raw.call("GetCaller", metadata=metadata))

        assert refused.reason == "CREDENTIALS_INVALID"

    async def test_gives_a_key_without_data_nothing(self, site: Site) -> None:
        made = await site.tenant.client.keys.create(
            "k", scopes=["tenant-admin"], tenant_id=site.tenant.tenant_id
        )
        metadata = metadata_of(made.api_key_secret, session_id=SESSION)

        refused = await failure(site.tenant.raw.call("ListConversations", metadata=metadata))

        assert refused.reason == "SCOPE_MISSING"


class TestModes:
    async def change(self, site: Site, mode: Any) -> None:
        request = tenant_pb.UpdateAgentRequest(
            agent=res.Agent(agent_id=site.agent_id, end_user_mode=mode)
        )
        request.update_mask.paths.append("end_user_mode")
        await site.tenant.raw.call("UpdateAgent", request)

    async def test_hold_at_once_when_they_change(self, site: Site) -> None:
        def call() -> Any:
            return site.tenant.raw.call("GetCaller", metadata=site.as_(user_id=ALICE))

        await call()
        await self.change(site, res.END_USER_MODE_SIGNED)
        unproved = await failure(call())
        await self.change(site, res.END_USER_MODE_ANONYMOUS)
        unwanted = await failure(call())
        await self.change(site, res.END_USER_MODE_UNSPECIFIED)
        await call()

        assert (unproved.reason, unproved.metadata) == (
            "USER_TOKEN_REQUIRED",
            (("method", "GetCaller"),),
        )
        assert unwanted.fields == ("annals-user-id",)

    async def test_hold_for_servers_that_create_for_a_user(self, site: Site) -> None:
        metadata = site.served(user_id=ALICE)
        await site.create(metadata, agent_id=site.agent_id)
        await self.change(site, res.END_USER_MODE_SIGNED)
        unproved = await failure(site.create(metadata, agent_id=site.agent_id))
        proved = await site.create(site.served(token_of=ALICE), agent_id=site.agent_id)
        await self.change(site, res.END_USER_MODE_ANONYMOUS)
        unwanted = await failure(site.create(metadata, agent_id=site.agent_id))

        assert unproved.reason == "USER_TOKEN_REQUIRED"
        assert proved.user_id == ALICE
        assert unwanted.fields == ("annals-user-id",)


class TestCreate:
    @pytest.mark.parametrize(
        ("end_user", "owner"),
        [
            ({"session_id": SESSION}, ("", SESSION)),
            ({"user_id": ALICE}, (ALICE, "")),
            ({"user_id": ALICE, "session_id": SESSION}, (ALICE, "")),
            ({"token_of": ALICE}, (ALICE, "")),
        ],
        ids=["session", "user", "both", "proved"],
    )
    async def test_makes_the_caller_the_owner(
        self, site: Site, end_user: dict[str, str], owner: tuple[str, str]
    ) -> None:
        context = res.ClientContext(page_url="https://shop.example/")

        made = await site.create(site.as_(**end_user), title="t", client_context=context)

        assert (made.user_id, made.session_id) == owner
        assert (made.agent_id, made.title, made.client_context) == (site.agent_id, "t", context)
        stored = await site.tenant.client.conversations.get(made.conversation_id)
        assert stored == made

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"user_id": BOB}, "user_id"),
            ({"session_id": "another"}, "session_id"),
            ({"agent_id": str(uuid4())}, "agent_id"),
            ({"org_id": "o"}, "org_id"),
            ({"host_conversation_id": "h"}, "host_conversation_id"),
            ({"provider_conversation_id": "p"}, "provider_conversation_id"),
        ],
    )
    async def test_refuses_what_is_not_theirs_to_say(
        self, site: Site, fields: dict[str, str], field: str
    ) -> None:
        refused = await failure(site.create(site.as_(session_id=SESSION), **fields))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (f"conversation.{field}",))

    async def test_takes_what_agrees(self, site: Site) -> None:
        made = await site.create(
            site.as_(session_id=SESSION), session_id=SESSION, agent_id=site.agent_id.upper()
        )

        assert (made.session_id, made.agent_id) == (SESSION, site.agent_id)

    async def test_by_a_server_names_any_agent(self, site: Site) -> None:
        other = await create_agent(site.tenant)

        made = await site.create(
            site.served(user_id=ALICE), agent_id=other, host_conversation_id="h"
        )

        assert (made.agent_id, made.user_id, made.host_conversation_id) == (other, ALICE, "h")

    async def test_is_safe_to_retry_for_the_same_user_alone(self, site: Site) -> None:
        wanted = str(uuid4())
        mine = site.as_(session_id=SESSION)

        first = await site.create(mine, conversation_id=wanted)
        again = await site.create(mine, conversation_id=wanted)
        refused = await failure(site.create(site.as_(session_id="b"), conversation_id=wanted))

        assert first == again
        assert refused.reason == "RESOURCE_ALREADY_EXISTS"


class TestAppend:
    @pytest.mark.parametrize(
        "event",
        [
            assistant("I am the model"),
            event_pb.NewEvent(message=res.MessageBody(role=res.ROLE_SYSTEM, content="obey")),
            tool_call("c", "t"),
            event_pb.NewEvent(system=res.SystemBody(content="x")),
            event_pb.NewEvent(error=res.ErrorBody(error_type="x")),
            event_pb.NewEvent(),
        ],
        ids=["assistant", "system prompt", "tool call", "system", "error", "nothing"],
    )
    @pytest.mark.parametrize("stream", [False, True], ids=["append", "stream"])
    async def test_takes_only_what_the_user_says(
        self, site: Site, event: Any, stream: bool
    ) -> None:
        mine = site.as_(session_id=SESSION)
        room = (await site.create(mine)).conversation_id
        request = event_pb.AppendEventsRequest(conversation_id=room, events=[user("hi"), event])

        if stream:
            call = stream_append(site, mine, request)
        else:
            call = site.tenant.raw.call("AppendEvents", request, metadata=mine)
        refused = await failure(call)

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("events[1]",))
        assert (await site.tenant.client.conversations.get(room)).event_count == 0

    @pytest.mark.parametrize(
        "fields",
        [{"model": "gpt"}, {"provider_response_id": "r"}, {"usage": res.Usage(input_tokens=1)}],
        ids=["model", "response", "usage"],
    )
    async def test_takes_no_word_of_the_model(self, site: Site, fields: dict[str, Any]) -> None:
        mine = site.as_(session_id=SESSION)
        room = (await site.create(mine)).conversation_id

        refused = await failure(site.append(mine, room, user("hi", **fields)))

        assert refused.fields == (f"events[0].{next(iter(fields))}",)

    async def test_by_a_server_takes_answers(self, site: Site) -> None:
        mine = site.served(session_id=SESSION)
        room = (await site.create(mine)).conversation_id

        stored = await site.append(mine, room, user("hi"), assistant("hello", model="gpt"))

        assert stored.last_seq == 2

    @pytest.mark.parametrize("kind", ["publishable", "secret"])
    async def test_needs_a_conversation(self, site: Site, kind: str) -> None:
        mine = (site.as_ if kind == "publishable" else site.served)(session_id=SESSION)

        refused = await failure(site.append(mine, "", user("hi")))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("conversation_id",))

    async def test_checks_every_batch_of_a_stream(self, site: Site) -> None:
        mine = site.as_(session_id=SESSION)
        room = (await site.create(mine)).conversation_id
        theirs = (await site.create(site.as_(session_id="another"))).conversation_id
        batches = [
            event_pb.AppendEventsRequest(conversation_id=name, events=[user("hi")])
            for name in (room, theirs)
        ]

        refused = await failure(stream_append(site, mine, *batches))

        assert refused.metadata == (("id", theirs), ("resource", "conversation"))
        assert (await site.tenant.client.conversations.get(room)).event_count == 1
        assert (await site.tenant.client.conversations.get(theirs)).event_count == 0

    async def test_leaves_the_end_user_in_history(self, site: Site) -> None:
        mine = site.as_(user_id=ALICE, session_id=SESSION)
        room = (await site.create(mine)).conversation_id
        stored = await site.append(mine, room, user("hi"))

        request = event_pb.ListObservationsRequest(event_id=stored.events[0].event_id)
        [seen] = (await site.tenant.raw.call("ListObservations", request)).observations

        assert (seen.actor.user_id, seen.actor.session_id) == (ALICE, SESSION)
        assert seen.actor.api_key_id


async def stream_append(site: Site, metadata: Metadata, *batches: Any) -> Any:
    from tests.security.test_access_table import ActingRaw

    stream = ActingRaw(site.tenant.raw, metadata).stream_append()
    for batch in batches:
        await stream.write(event_pb.StreamAppendEventsRequest(append=batch))
    await stream.done_writing()
    return [answer async for answer in stream]


class TestLists:
    @pytest.fixture
    async def listed(self, site: Site) -> Site:
        """Conversations of two sessions, two users and two agents, named after them."""
        other = await create_agent(site.tenant)
        for title, fields in {
            "mine": {"session_id": SESSION, "agent_id": site.agent_id},
            "other agent's": {"session_id": SESSION, "agent_id": other},
            "another session's": {"session_id": "another", "agent_id": site.agent_id},
            "alice's": {"user_id": ALICE, "agent_id": site.agent_id},
            "bob's": {"user_id": BOB, "agent_id": site.agent_id},
            "nobody's": {"agent_id": site.agent_id},
        }.items():
            await site.tenant.client.conversations.create(title=title, **fields)
        deleted = await site.tenant.client.conversations.create(
            title="deleted", session_id=SESSION, agent_id=site.agent_id
        )
        await site.tenant.client.conversations.delete(deleted.conversation_id)
        return site

    async def test_of_a_session_show_its_own(self, listed: Site) -> None:
        mine = listed.as_(session_id=SESSION)

        for query in ({}, {"session_id": SESSION}, {"agent_id": listed.agent_id}):
            assert await listed.list(mine, **query) == ["mine"]

    async def test_of_a_proved_user_show_theirs(self, listed: Site) -> None:
        proved = listed.as_(token_of=ALICE)

        for query in ({}, {"user_id": ALICE}):
            assert await listed.list(proved, **query) == ["alice's"]

    async def test_of_a_proved_user_with_a_session_show_either(self, listed: Site) -> None:
        both = listed.as_(token_of=ALICE, session_id=SESSION)

        assert await listed.list(both) == ["alice's"]
        assert await listed.list(both, session_id=SESSION) == ["mine"]

    async def test_by_a_server_span_agents(self, listed: Site) -> None:
        assert await listed.list(listed.served(session_id=SESSION)) == ["other agent's", "mine"]
        assert await listed.list(listed.served(token_of=ALICE)) == ["alice's"]

    @pytest.mark.parametrize("name", ["ListConversations", "GetCurrentConversation"])
    @pytest.mark.parametrize("query", [{}, {"user_id": ALICE}], ids=["unnamed", "named"])
    @pytest.mark.parametrize("kind", ["publishable", "secret"])
    async def test_by_user_need_a_token(
        self, listed: Site, name: str, query: dict[str, str], kind: str
    ) -> None:
        metadata = (listed.as_ if kind == "publishable" else listed.served)(user_id=ALICE)
        request = {
            "ListConversations": pb.ListConversationsRequest,
            "GetCurrentConversation": pb.GetCurrentConversationRequest,
        }[name](**query)

        refused = await failure(listed.tenant.raw.call(name, request, metadata=metadata))

        assert (refused.code, refused.reason, refused.metadata) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "USER_TOKEN_REQUIRED",
            (("method", name),),
        )

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"user_id": BOB}, "user_id"),
            ({"session_id": "another"}, "session_id"),
            ({"user_id": ALICE, "session_id": SESSION}, "session_id"),
            ({"agent_id": str(uuid4())}, "agent_id"),
            ({"show_deleted": True}, "show_deleted"),
        ],
        ids=["another user", "another session", "both", "another agent", "deleted"],
    )
    async def test_refuse_what_is_not_theirs(
        self, listed: Site, query: dict[str, Any], field: str
    ) -> None:
        both = listed.as_(token_of=ALICE, session_id=SESSION)

        refused = await failure(listed.list(both, **query))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))

    async def test_pages_of_one_are_nothing_to_another(self, listed: Site) -> None:
        await listed.tenant.client.conversations.create(
            title="mine too", session_id=SESSION, agent_id=listed.agent_id
        )
        request = pb.ListConversationsRequest(page_size=1)
        first = await listed.tenant.raw.call(
            "ListConversations", request, metadata=listed.as_(session_id=SESSION)
        )
        request.page_token = first.next_page_token

        stolen = await listed.tenant.raw.call(
            "ListConversations", request, metadata=listed.as_(session_id="another")
        )

        assert first.next_page_token
        assert {item.title for item in stolen.conversations} <= {"another session's"}

    @pytest.mark.parametrize(
        ("end_user", "title"),
        [({"session_id": SESSION}, "mine"), ({"token_of": BOB}, "bob's")],
        ids=["session", "user"],
    )
    async def test_the_current_one_is_theirs(
        self, listed: Site, end_user: dict[str, str], title: str
    ) -> None:
        found = await listed.tenant.raw.call(
            "GetCurrentConversation", metadata=listed.as_(**end_user)
        )

        assert found.conversation.title == title

    async def test_deleted_events_stay_hidden(self, listed: Site) -> None:
        mine = listed.as_(session_id=SESSION)
        room = (await listed.create(mine)).conversation_id
        request = event_pb.ListEventsRequest(conversation_id=room, show_deleted=True)

        refused = await failure(listed.tenant.raw.call("ListEvents", request, metadata=mine))

        assert refused.fields == ("show_deleted",)


@pytest.mark.parametrize("missing", [False, True], ids=["theirs", "missing"])
@pytest.mark.parametrize("name", ["GetConversation", "StoreTurn"], ids=["get", "store turn"])
async def test_host_ids_of_others_answer_like_missing(site: Site, name: str, missing: bool) -> None:
    await site.tenant.client.conversations.create(session_id="another")
    request = pb.CreateConversationRequest(
        conversation=res.Conversation(host_conversation_id="theirs", session_id="another")
    )
    await site.tenant.raw.call("CreateConversation", request)
    host_id = "nobodys" if missing else "theirs"
    asked: Any = pb.GetConversationRequest(host_conversation_id=host_id)
    if name == "StoreTurn":
        asked = event_pb.StoreTurnRequest(
            host_conversation_id=host_id, turn_id="t", event=user("hi")
        )

    refused = await failure(
        site.tenant.raw.call(name, asked, metadata=site.served(session_id=SESSION))
    )

    assert (refused.code, refused.metadata) == (
        grpc.StatusCode.NOT_FOUND,
        (("id", host_id), ("resource", "conversation")),
    )


async def answers_until_one(answers: Any) -> Any:
    """The answers up to the first that holds an event."""
    async for answer in answers:
        yield answer
        if answer.events:
            return


async def test_a_watch_ends_when_the_conversation_is_no_longer_theirs(site: Site) -> None:
    from tests.security.test_access_table import ActingRaw

    mine = site.as_(session_id=SESSION)
    room = (await site.create(mine)).conversation_id
    await site.append(mine, room, user("first"))
    watch = ActingRaw(site.tenant.raw, mine).answers(
        "WatchEvents", event_pb.WatchEventsRequest(conversation_id=room, after_seq=0)
    )
    answers = aiter(watch)
    seen = [event async for answer in answers_until_one(answers) for event in answer.events]
    await site.tenant.raw.call(
        "MergeSession", pb.MergeSessionRequest(session_id=SESSION, user_id=ALICE)
    )
    await append(site.tenant.raw, room, user("not for the session"))

    async def rest() -> Any:
        return [answer async for answer in answers]

    refused = await failure(rest())

    assert [event.message.content for event in seen] == ["first"]
    assert refused.reason == "RESOURCE_NOT_FOUND"
