"""The `annals` command: what it sends, prints and says when something is wrong."""

from __future__ import annotations

import json

import pytest
from grpc_health.v1 import health_pb2
from tests.unit.client.conftest import KEY

from annals.context.v1 import context_service_pb2, format_service_pb2
from annals.context.v1 import resources_pb2 as context_res
from annals.storage.v1 import (
    conversation_service_pb2,
    event_service_pb2,
    index_service_pb2,
    resources_pb2,
    search_service_pb2,
    tenant_service_pb2,
)
from annals_client.cli.app import annals
from annals_common import errors as server_errors


def test_help_explains_itself_with_examples(run):
    result = run("--help")

    assert result.exit_code == 0
    for word in ("Examples:", "annals import", "annals context", "ANNALS_API_KEY", "Exit codes"):
        assert word in result.stdout


def test_every_command_has_help(run):
    for name, command in annals.commands.items():
        for inner in [[], *([one] for one in getattr(command, "commands", {}))]:
            result = run(name, *inner, "--help")
            assert result.exit_code == 0
            assert "Usage:" in result.stdout


class TestFailures:
    @pytest.mark.parametrize(
        ("failure", "says"),
        [
            (server_errors.ResourceNotFoundError("conversation", "c9"), "no conversation c9"),
            (server_errors.FieldInvalidError("after_seq", "must be ≥ 0", -1), "after_seq"),
            (server_errors.CredentialsInvalidError(), "ANNALS_API_KEY"),
            (server_errors.AnnalsError("x", metadata={"incident_id": "5f0c"}), "5f0c"),
        ],
    )
    def test_a_failure_is_one_line_on_stderr(self, server, run, failure, says):
        server.answer("ListEvents", failure)

        result = run("list", "c9")

        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert says in result.stderr
        assert KEY not in result.stderr
        assert "Traceback" not in result.stderr

    def test_a_small_budget_says_which_works(self, server, run):
        server.answer("PrepareContext", server_errors.BudgetTooSmallError(budget=5, minimum=37))

        result = run("context", "c1", "--budget", "5")

        assert result.exit_code == 1
        assert "--budget 37" in result.stderr

    def test_a_server_that_is_not_there(self, run):
        result = run("--storage", "127.0.0.1:1", "--timeout", "2", "conversation", "list")

        assert result.exit_code == 1
        assert "storage does not answer" in result.stderr
        assert "make run" in result.stderr

    def test_no_address_at_all(self, run, monkeypatch):
        monkeypatch.delenv("ANNALS_STORAGE_ADDRESS")

        result = run("status")

        assert result.exit_code == 1
        assert "make run" in result.stderr

    @pytest.mark.parametrize(
        "arguments",
        [
            ["context", "c1"],
            ["context", "c1", "--budget", "many"],
            ["append", "c1", "--role", "robot", "x"],
            ["append", "c1", "--note", "--error", "x", "text"],
            ["append", "c1", "--metadata", "[1]", "x"],
            ["conversation", "update", "c1"],
            ["import", "no-such-file.json"],
            ["search", "x", "--limit", "0"],
            ["context", "c1", "--budget", "99999999999"],
        ],
    )
    def test_wrong_use_exits_with_2(self, run, arguments):
        result = run(*arguments)

        assert result.exit_code == 2
        assert "Error: " in result.stderr
        assert result.stdout == ""

    def test_text_that_is_no_unicode_is_named(self, run):
        result = run("append", "c1", "\udcff")

        assert result.exit_code == 1
        assert "not valid Unicode" in result.stderr


class TestEvents:
    STORED = event_service_pb2.AppendEventsResponse(
        conversation_id="c1", events=[event_service_pb2.AppendedEvent(event_id="e1", seq=1)]
    )

    @pytest.mark.parametrize(
        ("arguments", "body"),
        [
            (["--role", "assistant", "hi"], "message"),
            (["hi"], "message"),
            (["--tool-call", "c", "--tool", "find", "{}"], "tool_call"),
            (["--tool-result", "c", "--failed", "no"], "tool_result"),
            (["--note", "cut"], "system"),
            (["--error", "rate_limit", "slow"], "error"),
        ],
    )
    def test_append_sends_the_kind_asked_for(self, server, run, arguments, body):
        server.answer("AppendEvents", self.STORED)

        result = run("append", "c1", *arguments, "--idempotency-key", "k")

        sent = server.received["AppendEvents"][0].request
        assert result.exit_code == 0, result.stderr
        assert sent.events[0].WhichOneof("body") == body
        assert sent.events[0].idempotency_key == "k"
        assert "e1" in result.stdout

    def test_append_reads_stdin_and_creates_a_conversation(self, server, run):
        server.answer("AppendEvents", self.STORED)

        run("append", "new", "--role", "user", text="from a file\n")

        sent = server.received["AppendEvents"][0].request
        assert sent.conversation_id == ""
        assert sent.events[0].message.content == "from a file\n"

    def test_list_last_is_in_order(self, server, run):
        newest_first = [_event(3), _event(2)]
        server.answer("ListEvents", event_service_pb2.ListEventsResponse(events=newest_first))

        result = run("list", "c1", "--last", "2", "--json")

        sent = server.received["ListEvents"][0].request
        assert sent.order == event_service_pb2.SORT_ORDER_DESCENDING
        assert [event["seq"] for event in json.loads(result.stdout)] == ["2", "3"]

    def test_list_in_a_pipe_is_plain(self, server, run):
        server.answer("ListEvents", event_service_pb2.ListEventsResponse(events=[_event(1)]))

        result = run("list", "c1")

        assert result.stdout.startswith("#1  ")
        assert "user: two lines" in result.stdout
        assert "\x1b" not in result.stdout


def _event(seq: int) -> resources_pb2.Event:
    body = resources_pb2.MessageBody(role=resources_pb2.ROLE_USER, content="two\nlines [bold]")
    return resources_pb2.Event(seq=seq, message=body)


def test_json_is_all_there_is_on_stdout(server, run):
    server.answer(
        "ListConversations",
        conversation_service_pb2.ListConversationsResponse(
            conversations=[resources_pb2.Conversation(conversation_id="c1", title="ü")]
        ),
    )

    before, after = run("--json", "conversation", "list"), run("conversation", "list", "--json")

    assert json.loads(before.stdout)[0]["conversation_id"] == "c1"
    assert before.stdout == after.stdout


def test_an_empty_list_is_an_empty_array(server, run):
    server.answer("ListConversations", conversation_service_pb2.ListConversationsResponse())

    assert json.loads(run("conversation", "list", "--json").stdout) == []


def test_a_new_tenant_shows_its_key_once(server, run):
    server.answer(
        "CreateTenant",
        tenant_service_pb2.CreateTenantResponse(
            tenant=resources_pb2.Tenant(tenant_id="t1"), api_key_secret="shown-once"
        ),
    )

    result = run("tenant", "create", "Acme")

    assert "shown-once" in result.stdout
    assert "not shown again" in result.stderr


def test_search_prints_hits_and_what_lacks(server, run):
    hit = search_service_pb2.SearchHit(event=_event(4), conversation_id="c1", score=0.75)
    hit.components.add(signal="bm25", raw_score=3.2, normalized_score=1, weight=0.5, rank=1)
    server.answer(
        "SearchEvents",
        search_service_pb2.SearchEventsResponse(hits=[hit], degraded=["freshness_timeout"]),
    )

    result = run("search", "refund", "--explain", "--mode", "lexical")

    assert "0.750  c1  #4" in result.stdout
    assert "bm25: raw 3.200" in result.stdout
    assert "degraded: freshness_timeout" in result.stderr


def test_search_asks_as_its_options_say(server, run):
    hit = search_service_pb2.SearchHit(event=_event(4), conversation_id="c1", group_size=3)
    server.answer("SearchEvents", search_service_pb2.SearchEventsResponse(hits=[hit]))

    options = ["--language", "pt-BR", "--group-by", "conversation", "--diversity", "0.25"]
    result = run("search", "reembolso", *options)

    request = server.received["SearchEvents"][0].request
    assert (request.language, request.diversity) == ("pt-BR", 0.25)
    assert request.group_by == search_service_pb2.SEARCH_GROUPING_CONVERSATION
    assert "the best of 3 events" in result.stdout


class TestContext:
    PREPARED = context_service_pb2.PrepareContextResponse(
        payload='[{"role":"user","content":"[/bold] as it is"}]',
        total_tokens=20,
        budget_tokens=100,
        response_reserve_tokens=30,
        counter=context_res.TokenCounter(encoding="o200k_base", exact=True),
        ledger=[
            context_res.LedgerEntry(section=context_res.SECTION_RECENT, tokens=15, full_count=1),
            context_res.LedgerEntry(section=context_res.SECTION_FRAMING, tokens=5),
        ],
        items=[context_res.ContextItem(handle="#1", section=4, detail=1, tokens=15)],
        strategy=context_res.STRATEGY_FULL,
        degraded=["search_timeout"],
        context_version="v1",
    )

    def test_it_prints_payload_ledger_items_and_totals(self, server, run):
        server.answer("PrepareContext", self.PREPARED)

        result = run("context", "c1", "refund?", "--budget", "100", "--reserve", "30")

        assert result.exit_code == 0, result.stderr
        for part in (
            "[/bold] as it is",
            "recent\t15\t███████████████·····  75%\t1\t0\t0".replace("  75%", " 75%"),
            "#1\trecent\tfull\t15",
            "20 of 70 tokens",
            "search_timeout",
        ):
            assert part in result.stdout

    def test_json_is_the_answer_itself(self, server, run):
        server.answer("PrepareContext", self.PREPARED)

        printed = json.loads(run("context", "c1", "--budget", "100", "--json").stdout)

        assert printed["total_tokens"] == 20
        assert sum(entry["tokens"] for entry in printed["ledger"]) == 20

    def test_the_payload_alone_is_exact(self, server, run):
        server.answer("PrepareContext", self.PREPARED)

        result = run("context", "c1", "--budget", "100", "--payload-only", "--format", "text")

        assert result.stdout == self.PREPARED.payload
        sent = server.received["PrepareContext"][0].request
        assert sent.format == context_res.PAYLOAD_FORMAT_TEXT


def test_count_tokens_reads_stdin(server, run):
    server.answer("CountTokens", format_service_pb2.CountTokensResponse(total_tokens=3))

    result = run("count-tokens", text="how many")

    assert result.stdout.startswith("3 tokens")
    assert list(server.received["CountTokens"][0].request.texts) == ["how many"]


class TestStatus:
    def test_it_shows_both_services_and_the_index(self, server, run):
        serving = health_pb2.HealthCheckResponse(status=1)
        server.answer("Check", serving)
        server.answer("GetIndexStatus", index_service_pb2.GetIndexStatusResponse(chunk_count=7))

        result = run("status", "--json")

        assert result.exit_code == 0
        printed = json.loads(result.stdout)
        assert (printed["storage"], printed["context"]) == ("serving", "serving")
        assert printed["index"]["chunk_count"] == "7"

    def test_it_fails_when_a_service_does_not_serve(self, server, run):
        server.answer("Check", health_pb2.HealthCheckResponse(status=2))

        result = run("status")

        assert result.exit_code == 1
        assert "not-serving" in result.stdout
