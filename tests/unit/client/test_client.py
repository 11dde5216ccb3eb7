"""Errors, keys, pages and the shapes of requests."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from datetime import UTC, datetime

import pytest
from tests.unit.client.conftest import KEY

from annals.context.v1 import context_service_pb2
from annals.storage.v1 import (
    conversation_service_pb2,
    event_service_pb2,
    resources_pb2,
    tenant_service_pb2,
)
from annals_client import (
    AnnalsClient,
    BudgetTooSmallError,
    ConfigurationError,
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    NotFoundError,
    assistant,
    error,
    from_environment,
    message,
    system,
    tool_call,
    tool_result,
    user,
)
from annals_client import errors as client_errors
from annals_common import errors as server_errors


async def test_a_small_budget_names_the_smallest_that_works(server, call):
    server.answer("PrepareContext", server_errors.BudgetTooSmallError(budget=10, minimum=37))

    with pytest.raises(BudgetTooSmallError) as raised:
        await call(lambda client: client.context.prepare("c1", budget_tokens=10))

    assert raised.value.minimum_budget_tokens == 37
    assert raised.value.violations[0].field == "budget_tokens"
    assert (raised.value.method, raised.value.service) == ("PrepareContext", "context")


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (server_errors.FieldInvalidError("seq", "must be ≥ 1", 0), InvalidArgumentError),
        (server_errors.ResourceNotFoundError("event", "e1"), NotFoundError),
        (server_errors.IdempotencyKeyReusedError("k"), IdempotencyKeyReusedError),
        (server_errors.CredentialsInvalidError(), client_errors.UnauthenticatedError),
        (server_errors.ScopeMissingError("m", "admin"), client_errors.PermissionDeniedError),
        (server_errors.PageTokenInvalidError(), client_errors.PageTokenInvalidError),
        (server_errors.AnnalsError("x"), client_errors.InternalError),
    ],
)
async def test_each_reason_has_its_error(server, call, failure, kind):
    server.answer("GetEvent", failure)

    with pytest.raises(kind) as raised:
        await call(lambda client: client.events.get("e1"))

    assert raised.value.reason == failure.reason
    assert raised.value.metadata == failure.metadata
    assert raised.value.message == failure.message


async def test_the_key_travels_and_never_shows(server, call, client, aio_client, caplog):
    server.answer("GetEvent", server_errors.CredentialsInvalidError())

    with pytest.raises(client_errors.UnauthenticatedError) as raised:
        await call(lambda client: client.events.get("e1"))

    assert server.received["GetEvent"][0].metadata["authorization"] == f"Bearer {KEY}"
    shown = [repr(client), repr(aio_client), repr(client._session.endpoints), caplog.text]
    assert KEY not in "".join([*shown, str(raised.value), repr(raised.value)])


async def test_tenants_are_managed_with_the_admin_key(server, call):
    server.answer("GetTenant", tenant_service_pb2.GetTenantResponse())
    server.answer("ListAgents", tenant_service_pb2.ListAgentsResponse())

    await call(lambda client: client.tenants.get("t1"))
    await call(lambda client: client.agents.list(tenant_id="t1"))
    await call(lambda client: client.agents.list())

    of_tenant, of_own = server.received["ListAgents"]
    assert server.received["GetTenant"][0].metadata["authorization"] == "Bearer adm"
    assert of_tenant.metadata["authorization"] == "Bearer adm"
    assert of_own.metadata["authorization"] == f"Bearer {KEY}"


def _page(*seqs, token=""):
    events = [resources_pb2.Event(seq=seq) for seq in seqs]
    return event_service_pb2.ListEventsResponse(events=events, next_page_token=token)


async def test_a_list_goes_over_all_pages(server, call):
    server.answer("ListEvents", _page(1, 2, token="a"), _page(3, 4, token="b"), _page(5))

    events = await call(lambda client: client.events.list("c1", roles=["user"]))

    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert [one.request.page_token for one in server.received["ListEvents"]] == ["", "a", "b"]
    assert {tuple(one.request.roles) for one in server.received["ListEvents"]} == {(1,)}


async def test_a_list_reads_no_page_beyond_its_limit(server, call):
    server.answer("ListEvents", _page(1, 2, token="a"), _page(3, 4, token="b"), _page(5))

    events = await call(lambda client: client.events.list("c1", limit=3))

    assert [event.seq for event in events] == [1, 2, 3]
    assert len(server.received["ListEvents"]) == 2


def test_pages_are_read_as_they_are_needed(server, client):
    server.answer("ListEvents", _page(1, token="a"), _page(2))

    events = client.events.list("c1")

    assert not server.received["ListEvents"]
    next(events)
    assert len(server.received["ListEvents"]) == 1


async def test_an_update_names_only_what_changes(server, call):
    server.answer("UpdateConversation", conversation_service_pb2.UpdateConversationResponse())

    await call(lambda client: client.conversations.update("c1", title="", status="archived"))

    request = server.received["UpdateConversation"][0].request
    assert sorted(request.update_mask.paths) == ["status", "title"]
    assert request.conversation.status == resources_pb2.CONVERSATION_STATUS_ARCHIVED


async def test_optional_numbers_are_absent_unless_given(server, call):
    server.answer("PrepareContext", context_service_pb2.PrepareContextResponse())

    await call(lambda client: client.context.prepare("c", budget_tokens=9, relevant_events=0))

    request = server.received["PrepareContext"][0].request
    assert request.HasField("relevant_events")
    assert not request.HasField("recent_events")


def test_events_are_built_by_kind():
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    assert user("hi", author_name="Ann").message.author_name == "Ann"
    assert assistant("yes").message.role == resources_pb2.ROLE_ASSISTANT
    assert message("system", "be kind").message.role == resources_pb2.ROLE_SYSTEM
    assert tool_call("c", "find", {"q": "ü"}).tool_call.input_json == '{"q": "ü"}'
    assert tool_call("c", "find", '{"q":1}').tool_call.input_json == '{"q":1}'
    assert tool_result("c", [1], is_error=True).tool_result.result == "[1]"
    assert system("cut").system.content == "cut"
    assert error("rate_limit", "slow").error.error_type == "rate_limit"
    assert user("x", event_time=when).event_time.ToDatetime(tzinfo=UTC) == when
    assert user("x", metadata={"a": [1]}).metadata["a"][0] == 1


def test_an_unknown_role_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="none of user, assistant, system, tool"):
        message("robot", "hi")


def test_both_clients_have_the_same_methods(client, aio_client):
    for name in ("tenants", "agents", "keys", "conversations", "events", "search", "formats"):
        own, twin = getattr(client, name), getattr(aio_client, name)
        methods = {method for method in dir(own) if not method.startswith("_")}
        assert methods == {method for method in dir(twin) if not method.startswith("_")}
        for method in methods - {"stream_append"}:
            assert inspect.signature(getattr(own, method)) == inspect.signature(
                getattr(twin, method)
            )


def test_without_an_address_it_says_what_to_do():
    with pytest.raises(ConfigurationError, match="make run"):
        AnnalsClient("")


def test_a_client_of_storage_alone_refuses_context(server):
    with (
        AnnalsClient(server.address) as client,
        pytest.raises(ConfigurationError, match="ANNALS_CONTEXT_ADDRESS"),
    ):
        client.context.prepare("c", budget_tokens=100)


class TestEndpoints:
    def _write(self, root, **fields):
        path = root / "build" / "local" / "endpoints.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(fields))
        return path

    def test_the_nearest_file_is_found(self, tmp_path):
        self._write(tmp_path, storage="s:1", context="c:2", api_key="k", admin_key="a")
        below = tmp_path / "x" / "y"
        below.mkdir(parents=True)

        found = from_environment({}, directory=below)

        assert (found.storage, found.context) == ("s:1", "c:2")
        assert (found.api_key.value, found.admin_key.value) == ("k", "a")

    def test_variables_go_before_the_file(self, tmp_path):
        self._write(tmp_path, storage="s:1", context="c:2", api_key="k")
        environ = {"ANNALS_STORAGE_ADDRESS": "other:9", "ANNALS_API_KEY": "mine"}

        found = from_environment(environ, directory=tmp_path)

        assert (found.storage, found.context) == ("other:9", "c:2")
        assert found.api_key.value == "mine"

    def test_a_variable_names_the_file(self, tmp_path):
        path = self._write(tmp_path / "elsewhere", storage="s:1")

        found = from_environment({"ANNALS_ENDPOINTS": os.fspath(path)}, directory=tmp_path)

        assert found.storage == "s:1"

    @pytest.mark.parametrize("content", ["{", "[]", ""])
    def test_a_broken_file_is_named(self, tmp_path, content):
        path = tmp_path / "e.json"
        path.write_text(content)

        with pytest.raises(ConfigurationError, match=r"e\.json"):
            from_environment({"ANNALS_ENDPOINTS": os.fspath(path)})


async def test_calls_of_the_async_client_run_together(server, aio_client):
    server.answer("GetEvent", event_service_pb2.GetEventResponse())

    answers = await asyncio.gather(*(aio_client.events.get(str(n)) for n in range(20)))

    assert len(answers) == 20
