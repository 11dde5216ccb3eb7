"""ListConversations: filters, order and pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from tests.support.raw import Raw, failure
from tests.support.storage import Tenant

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import user


async def titles(tenant: Tenant, **query: Any) -> list[str]:
    return [item.title async for item in tenant.client.conversations.list(**query)]


async def pages(
    raw: Raw, request: pb.ListConversationsRequest
) -> AsyncIterator[pb.ListConversationsResponse]:
    while True:
        page = await raw.call("ListConversations", request)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


async def test_runs_from_the_last_active_to_the_first(tenant: Tenant) -> None:
    create = tenant.client.conversations.create
    first = await create(title="first")
    await create(title="second")
    await tenant.client.events.append(first.conversation_id, user("hello"))
    await create(title="third")

    assert await titles(tenant) == ["third", "first", "second"]


async def test_filters_hold_together(tenant: Tenant) -> None:
    client = tenant.client
    agent = await client.agents.create("a")
    await client.conversations.create(title="agent", agent_id=agent.agent_id)
    await client.conversations.create(title="user", user_id="u")
    await client.conversations.create(title="session", session_id="s")
    both = await client.conversations.create(title="both", agent_id=agent.agent_id, user_id="u")
    await client.conversations.end(both.conversation_id)
    archived = await client.conversations.create(title="archived")
    await client.conversations.update(archived.conversation_id, status="archived")

    assert await titles(tenant, agent_id=agent.agent_id) == ["both", "agent"]
    assert await titles(tenant, user_id="u") == ["both", "user"]
    assert await titles(tenant, session_id="s") == ["session"]
    assert await titles(tenant, statuses=["completed"]) == ["both"]
    assert await titles(tenant, statuses=["completed", "archived"]) == ["archived", "both"]
    assert await titles(tenant, agent_id=agent.agent_id, statuses=["active"]) == ["agent"]
    assert await titles(tenant, agent_id=agent.agent_id, user_id="u") == ["both"]
    assert await titles(tenant, user_id="nobody") == []
    assert await titles(tenant, agent_id=str(uuid4())) == []


async def test_bounds_of_time_include_after_and_exclude_before(tenant: Tenant) -> None:
    made = await tenant.client.conversations.create(title="it")
    at = made.create_time.ToDatetime(tzinfo=UTC)
    later = at + timedelta(microseconds=1)

    assert await titles(tenant, active_after=at) == ["it"]
    assert await titles(tenant, active_after=later) == []
    assert await titles(tenant, active_before=at) == []
    assert await titles(tenant, active_before=later) == ["it"]
    assert await titles(tenant, active_after=datetime(1, 1, 1, tzinfo=UTC)) == ["it"]


@pytest.mark.parametrize("page_size", [1, 2, 5, 7, 1000])
async def test_pages_hold_everything_once(tenant: Tenant, page_size: int) -> None:
    for number in range(7):
        await tenant.client.conversations.create(title=str(number))
    request = pb.ListConversationsRequest(page_size=page_size)

    found = [page async for page in pages(tenant.raw, request)]

    assert all(len(page.conversations) <= page_size for page in found)
    assert [c.title for page in found for c in page.conversations] == list("6543210")


async def test_pages_are_stable_under_inserts(tenant: Tenant) -> None:
    for number in range(6):
        await tenant.client.conversations.create(title=str(number))
    request = pb.ListConversationsRequest(page_size=2)

    seen = []
    async for page in pages(tenant.raw, request):
        seen += [item.title for item in page.conversations]
        await tenant.client.conversations.create(title="new")

    assert seen == list("543210")


async def test_a_page_size_may_change_between_pages(tenant: Tenant) -> None:
    for number in range(5):
        await tenant.client.conversations.create(title=str(number))
    first = await tenant.raw.call("ListConversations", pb.ListConversationsRequest(page_size=2))

    rest = await tenant.raw.call(
        "ListConversations",
        pb.ListConversationsRequest(page_size=100, page_token=first.next_page_token),
    )

    assert [item.title for item in rest.conversations] == list("210")
    assert rest.next_page_token == ""


def other_query(request: pb.ListConversationsRequest) -> None:
    request.user_id = "another"


def garbled(request: pb.ListConversationsRequest) -> None:
    request.page_token = f"x{request.page_token}"


def garbage(request: pb.ListConversationsRequest) -> None:
    request.page_token = "💣 not a token"


@pytest.mark.parametrize("misuse", [other_query, garbled, garbage])
async def test_a_page_token_continues_only_its_own_query(
    tenant: Tenant, misuse: Callable[[pb.ListConversationsRequest], None]
) -> None:
    request = await page_one(tenant)
    misuse(request)

    refused = await failure(tenant.raw.call("ListConversations", request))

    assert (refused.reason, refused.fields) == ("PAGE_TOKEN_INVALID", ("page_token",))


async def test_a_page_token_is_worthless_to_another_tenant(
    tenant: Tenant, other_tenant: Tenant
) -> None:
    request = await page_one(tenant)

    refused = await failure(other_tenant.raw.call("ListConversations", request))

    assert refused.reason == "PAGE_TOKEN_INVALID"


async def page_one(tenant: Tenant) -> pb.ListConversationsRequest:
    """A request for the second page."""
    for _ in range(3):
        await tenant.client.conversations.create()
    page = await tenant.raw.call("ListConversations", pb.ListConversationsRequest(page_size=1))
    return pb.ListConversationsRequest(page_size=1, page_token=page.next_page_token)


async def test_statuses_must_be_known(tenant: Tenant) -> None:
    request = pb.ListConversationsRequest(
        statuses=[res.CONVERSATION_STATUS_ACTIVE, res.CONVERSATION_STATUS_UNSPECIFIED]
    )

    refused = await failure(tenant.raw.call("ListConversations", request))

    assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("statuses[1]",))


async def test_filter_by_organisation_title_and_metadata(tenant: Tenant) -> None:
    create = tenant.raw.call
    for title, org_id, metadata in [
        ("Über 100% WOOL_x", "o", {"a": {"b": [1, 2]}, "c": "d"}),
        ("wool-x, 100 percent", "", {"a": {"b": [3]}}),
        ("back\\slash", "o", {}),
    ]:
        conversation = res.Conversation(title=title, org_id=org_id)
        conversation.metadata.update(metadata)
        await create("CreateConversation", pb.CreateConversationRequest(conversation=conversation))

    async def found(metadata: dict[str, Any] | None = None, **query: str) -> list[str]:
        request = pb.ListConversationsRequest(**query)
        request.metadata.update(metadata or {})
        page = await tenant.raw.call("ListConversations", request)
        return [item.title for item in page.conversations]

    assert await found(org_id="o") == ["back\\slash", "Über 100% WOOL_x"]
    assert await found(title_contains="wool") == ["wool-x, 100 percent", "Über 100% WOOL_x"]
    assert await found(title_contains="ÜBER") == ["Über 100% WOOL_x"]
    assert await found(title_contains="100%") == ["Über 100% WOOL_x"]
    assert await found(title_contains="l_x") == ["Über 100% WOOL_x"]
    assert await found(title_contains="\\s") == ["back\\slash"]
    assert await found(title_contains="' OR true --") == []
    assert await found({"a": {"b": [2]}}) == ["Über 100% WOOL_x"]
    assert await found({"c": "d"}, org_id="o") == ["Über 100% WOOL_x"]
    assert await found({"c": "e"}) == []


@pytest.mark.parametrize(
    ("query", "reason", "field"),
    [
        ({"title_contains": "x" * 501}, "LIMIT_EXCEEDED", "title_contains"),
        ({"title_contains": "a\x00"}, "FIELD_INVALID", "title_contains"),
        ({"org_id": "x" * 257}, "LIMIT_EXCEEDED", "org_id"),
        ({"metadata": {"a": "x" * 9_000}}, "LIMIT_EXCEEDED", "metadata"),
        ({"metadata": {"a": float("nan")}}, "FIELD_INVALID", "metadata"),
    ],
)
async def test_bad_filters_are_refused(
    tenant: Tenant, query: dict[str, Any], reason: str, field: str
) -> None:
    metadata = query.pop("metadata", {})
    request = pb.ListConversationsRequest(**query)
    request.metadata.update(metadata)

    refused = await failure(tenant.raw.call("ListConversations", request))

    assert (refused.reason, refused.fields) == (reason, (field,))
