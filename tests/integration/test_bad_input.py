"""Whatever is wrong with a request: a precise status, nothing stored, never INTERNAL.

`tests/fuzz` sends what nobody thought of.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any
from uuid import UUID, uuid4

import grpc
import psycopg
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from tests.support.appending import append, empty_conversation, listed, state
from tests.support.locks import waiting_for_lock
from tests.support.messages import Path, dotted, is_string, leaf_fields, new, put
from tests.support.raw import Failure, failure, methods, path_of, unary_methods
from tests.support.storage import Tenant
from tests.support.valid_requests import ADMIN_ONLY, VALID, send
from tests.support.waiting import eventually

from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import search_service_pb2 as search_pb
from annals.storage.v1 import tenant_service_pb2 as tenant_pb
from annals_client import tool_call, user
from annals_common.paging import encode_page_token
from annals_local.postgres import LocalPostgres

MEBIBYTE = 1024 * 1024
OUTPUT_ONLY = {
    "Conversation": frozenset(
        {
            *("end_summary", "create_time", "update_time", "last_event_time", "end_time"),
            *("delete_time", "archive_time"),
        }
    ),
    "ForkOrigin": frozenset({"conversation_id", "event_id"}),
    "SigningKey": frozenset({"signing_key_id", "create_time", "revoke_time"}),
    "Agent": frozenset({"create_time", "update_time"}),
    "Memory": frozenset({"create_time", "update_time", "delete_time"}),
    "Relationship": frozenset({"relationship_id", "create_time", "label"}),
    "Attachment": frozenset({"create_time"}),
    "ProviderLog": frozenset({"provider_log_id", "create_time", "expire_time"}),
    "RetentionPolicy": frozenset({"update_time"}),
    "Summary": frozenset({"summary_id", "conversation_id", "create_time"}),
    "SummaryRun": frozenset({"run_id", "conversation_id", "end_time"}),
}


def check(
    refused: Failure, field: str, reason: str = "FIELD_INVALID", code: str = "INVALID_ARGUMENT"
) -> None:
    """Assert a precise status that names the field."""
    assert (refused.code.name, refused.reason, refused.domain) == (code, reason, "annals")
    assert refused.fields == (field,)
    assert dict(refused.metadata)["field"] == field
    assert refused.message


def request_fields(wanted: Any) -> list[tuple[str, Path]]:
    return [
        (name, path)
        for name, method in methods().items()
        if name not in ADMIN_ONLY
        for path in leaf_fields(method.input_type)
        if wanted(path) and is_read(name, path)
    ]


def is_read(name: str, path: Path) -> bool:
    if (name, dotted(path)) in {
        ("CreateConversation", "conversation.status"),
        ("CreateConversation", "conversation.last_response_id"),
        ("UpdateConversation", "conversation.host_conversation_id"),
        ("UpdateMemory", "memory.conversation_id"),
    }:
        return False
    field = path[-1]
    return field.name not in OUTPUT_ONLY.get(field.containing_type.name, ())


def is_kind(full_name: str) -> Any:
    return lambda path: path[-1].message_type and path[-1].message_type.full_name == full_name


def is_enum(path: Path) -> bool:
    return path[-1].type == FieldDescriptor.TYPE_ENUM


def is_uuid(path: Path) -> bool:
    own_names = {
        *("host_conversation_id", "provider_response_id", "session_id", "tool_call_id"),
        *("turn_id", "user_id", "org_id", "provider_conversation_id", "last_response_id"),
    }
    return is_string(path) and path[-1].name.endswith(("_id", "_ids")) and (
        path[-1].name not in own_names
    )  # fmt: skip


def named(probes: list[tuple[str, Path]]) -> Any:
    labels = [f"{name}.{dotted(path)}" for name, path in probes]
    return pytest.mark.parametrize(("name", "path"), probes, ids=labels)


def shown(path: Path) -> str:
    """How an error names a field: indexes in, the wrapper of a stream's batch out."""
    parts = [f"{field.name}[0]" if field.is_repeated else field.name for field in path]
    return ".".join(part for part in parts if part != "append")


async def refuse(tenant: Tenant, name: str, path: Path, value: Any) -> Failure:
    request = await VALID[name](tenant)
    complete_body(request, path)
    put(request, path, value)
    return await failure(send(tenant, name, request))


def complete_body(request: Any, path: Path) -> None:
    """Fill the other fields of an event's body, so that one alone is wrong."""
    bodies = {
        "message": {"role": res.ROLE_USER},
        "tool_call": {"tool_call_id": "c", "tool_name": "t"},
        "tool_result": {"tool_call_id": "c"},
        "error": {"error_type": "e"},
    }
    for depth, field in enumerate(path):
        for name, value in bodies.get(field.name, {}).items():
            inner = field.message_type
            if inner is not None:
                put(request, (*path[: depth + 1], inner.fields_by_name[name]), value)


@named(request_fields(is_string))
async def test_nul_is_refused_in_every_text(tenant: Tenant, name: str, path: Path) -> None:
    refused = await refuse(tenant, name, path, "a\x00b")

    assert (refused.code.name, refused.domain) == ("INVALID_ARGUMENT", "annals")
    assert refused.reason in {"FIELD_INVALID", "PAGE_TOKEN_INVALID"}
    assert refused.fields == (shown(path),)
    assert "\x00" not in refused.message


@named(request_fields(is_uuid))
@pytest.mark.parametrize("value", ["17", "0199c7a2-7d4e-7b1e-9c55-02zz", "x" * 5000, "{" * 36])
async def test_ids_must_be_uuids(tenant: Tenant, name: str, path: Path, value: str) -> None:
    refused = await refuse(tenant, name, path, value)

    check(refused, shown(path))
    assert len(refused.message) < 300


@named(request_fields(is_enum))
@pytest.mark.parametrize("value", [77, -1, 2**31 - 1])
async def test_enums_must_be_known(tenant: Tenant, name: str, path: Path, value: int) -> None:
    check(await refuse(tenant, name, path, value), shown(path))


@named(request_fields(is_kind("google.protobuf.Timestamp")))
@pytest.mark.parametrize(
    "value",
    [
        Timestamp(seconds=-62135596801),
        Timestamp(seconds=253402300800),
        Timestamp(seconds=2**63 - 1),
        Timestamp(seconds=1, nanos=-1),
        Timestamp(seconds=1, nanos=10**9),
    ],
    ids=["year 0", "year 10000", "huge", "negative nanos", "many nanos"],
)
async def test_times_must_exist(tenant: Tenant, name: str, path: Path, value: Timestamp) -> None:
    check(await refuse(tenant, name, path, value), shown(path))


def struct_of(**values: Any) -> Struct:
    struct = Struct()
    struct.update(values)
    return struct


def deep(levels: int) -> bytes:
    """A metadata field nested too deep for any decoder, as bytes on the wire."""
    value = b"\x1a\x00"
    for _ in range(levels):
        entry = b"\x0a\x01k\x12" + varint(len(value)) + value
        struct = b"\x0a" + varint(len(entry)) + entry
        value = b"\x2a" + varint(len(struct)) + struct
    return value


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@named(request_fields(is_kind("google.protobuf.Struct")))
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (struct_of(x=math.nan), "FIELD_INVALID"),
        (struct_of(x=[math.inf]), "FIELD_INVALID"),
        (struct_of(x={"y": -math.inf}), "FIELD_INVALID"),
        (struct_of(x="a\x00b"), "FIELD_INVALID"),
        (struct_of(**{"a\x00b": 1}), "FIELD_INVALID"),
        (struct_of(x="y" * 70_000), "LIMIT_EXCEEDED"),
    ],
    ids=["NaN", "infinity", "minus infinity", "NUL in a text", "NUL in a key", "70 KB"],
)
async def test_structs_must_be_json(
    tenant: Tenant, name: str, path: Path, value: Struct, reason: str
) -> None:
    check(await refuse(tenant, name, path, value), shown(path), reason)


async def test_structs_nested_without_end_are_refused(tenant: Tenant) -> None:
    event = b"\x62" + varint(len(body := b"\x0a\x01k\x12" + varint(len(d := deep(5000))) + d))
    raw = (b"\x12" + varint(len(inner := event + body))) + inner

    refused = await failure(tenant.raw.call("AppendEvents", raw))

    check(refused, "request")


class TestNumbers:
    @pytest.mark.parametrize(
        ("name", "field", "value"),
        [
            *[(n, "page_size", v) for n, m in unary_methods().items() for v in (-1, 1001, 2**31 - 1)
              if "page_size" in m.input_type.fields_by_name and n not in ADMIN_ONLY],
            ("ListEvents", "after_seq", -1),
            ("ListEvents", "after_seq", 2**63 - 1),
            ("ListEvents", "before_seq", -1),
            ("ListEvents", "before_seq", -(2**63)),
            ("AppendEvents", "expected_last_seq", -1),
            ("AppendEvents", "expected_last_seq", 2**63 - 1),
            ("SearchEvents", "limit", -1),
            ("SearchEvents", "limit", 1001),
            ("SearchEvents", "min_score", -0.1),
            ("SearchEvents", "min_score", 1.1),
            ("SearchEvents", "min_score", math.nan),
            ("SearchEvents", "min_score", math.inf),
            ("SearchEvents", "min_score", -math.inf),
        ],
    )  # fmt: skip
    async def test_out_of_range_are_refused(
        self, tenant: Tenant, name: str, field: str, value: Any
    ) -> None:
        request = await VALID[name](tenant)
        setattr(request, field, value)

        check(await failure(tenant.raw.call(name, request)), field)

    @pytest.mark.parametrize("seq", [0, -1, 2**63 - 1])
    async def test_a_seq_to_get_must_be_positive(self, tenant: Tenant, seq: int) -> None:
        request = event_pb.GetEventRequest(conversation_id=str(uuid4()), seq=seq)

        check(await failure(tenant.raw.call("GetEvent", request)), "seq")

    @pytest.mark.parametrize("version", [-1, 2**63 - 1])
    async def test_a_version_must_be_possible(self, tenant: Tenant, version: int) -> None:
        request = await VALID["UpdateConversation"](tenant)
        request.conversation.version = version

        refused = await failure(tenant.raw.call("UpdateConversation", request))

        check(refused, "conversation.version")

    @pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "cached_input_tokens"])
    @pytest.mark.parametrize("value", [-1, 2**63 - 1])
    async def test_usage_must_be_possible(self, tenant: Tenant, field: str, value: int) -> None:
        event = user("x", usage=res.Usage(**{field: value}))

        check(await failure(append(tenant.raw, "", event)), f"events[0].usage.{field}")

    @pytest.mark.parametrize("value", [-0.1, 2.1, math.nan, math.inf])
    async def test_a_temperature_must_be_possible(self, tenant: Tenant, value: float) -> None:
        agent = res.Agent(display_name="a", temperature=value)

        refused = await failure(
            tenant.raw.call("CreateAgent", tenant_pb.CreateAgentRequest(agent=agent))
        )

        check(refused, "agent.temperature")


INVALID_JSON = {
    "NaN": '{"a": NaN}',
    "Infinity": "[Infinity]",
    "minus Infinity": "-Infinity",
    "trailing comma": '{"a": 1,}',
    "single quotes": "{'a': 1}",
    "cut off": '{"a": ',
    "two values": "{} {}",
    "a control character": '"a\nb"',
    "a lone surrogate": '{"a": "\\ud83d"}',
    "a lone low surrogate as key": '{"\\udc00": 1}',
    "not JSON": "hello",
    "deep": "[" * 100_000,
}


class TestJson:
    @pytest.mark.parametrize("text", INVALID_JSON.values(), ids=INVALID_JSON)
    async def test_of_a_tool_call_must_be_valid(self, tenant: Tenant, text: str) -> None:
        refused = await failure(append(tenant.raw, "", tool_call("c", "t", text)))

        check(refused, "events[0].tool_call.input_json")

    async def test_of_a_tool_call_may_hold_any_number(self, tenant: Tenant) -> None:
        text = '{"n": ' + "7" * 10_000 + "}"

        stored = await append(tenant.raw, "", tool_call("c", "t", text))

        event = await tenant.client.events.get(stored.events[0].event_id)
        assert event.tool_call.input_json == text

    @pytest.mark.parametrize(
        ("field", "text"),
        [
            ("tools_json", "{,}"),
            ("tools_json", '{"an": "object"}'),
            ("output_schema_json", "{,}"),
            ("output_schema_json", '["a list"]'),
        ],
    )
    async def test_of_an_agent_must_have_its_shape(
        self, tenant: Tenant, field: str, text: str
    ) -> None:
        agent = res.Agent(display_name="a", **{field: text})

        refused = await failure(
            tenant.raw.call("CreateAgent", tenant_pb.CreateAgentRequest(agent=agent))
        )

        check(refused, f"agent.{field}")


class TestSizes:
    @pytest.mark.parametrize(
        ("name", "field", "chars"),
        [
            ("CreateConversation", "conversation.title", 501),
            ("CreateConversation", "conversation.user_id", 257),
            ("CreateConversation", "conversation.session_id", 257),
            ("CreateConversation", "conversation.client_context.page_url", 2049),
            ("CreateConversation", "conversation.client_context.referrer", 2049),
            ("CreateConversation", "conversation.client_context.user_agent", 1025),
            ("CreateConversation", "conversation.client_context.locale", 36),
            ("CreateConversation", "conversation.client_context.timezone", 65),
            ("EndConversation", "summary", 100_001),
            ("SearchEvents", "query", 32_769),
            ("CreateAgent", "agent.display_name", 201),
            ("CreateAgent", "agent.system_prompt", 100_001),
            ("CreateAgent", "agent.model", 201),
            ("CreateApiKey", "display_name", 201),
            ("AppendEvents", "events.message.author_name", 201),
            ("AppendEvents", "events.tool_call.tool_call_id", 257),
            ("AppendEvents", "events.tool_call.tool_name", 257),
            ("AppendEvents", "events.tool_result.tool_call_id", 257),
            ("AppendEvents", "events.tool_result.tool_name", 257),
            ("AppendEvents", "events.error.error_type", 257),
            ("AppendEvents", "events.model", 201),
            ("AppendEvents", "events.provider_response_id", 257),
            ("AppendEvents", "events.idempotency_key", 257),
            ("AppendEvents", "events.system.content", MEBIBYTE + 1),
            ("AppendEvents", "events.tool_result.result", MEBIBYTE + 1),
            ("AppendEvents", "events.tool_call.input_json", MEBIBYTE + 1),
            ("AppendEvents", "events.error.error_message", 64 * 1024 + 1),
        ],
    )
    async def test_of_texts_are_limited(
        self, tenant: Tenant, name: str, field: str, chars: int
    ) -> None:
        path = next(p for p in leaf_fields(methods()[name].input_type) if dotted(p) == field)

        refused = await refuse(tenant, name, path, "x" * chars)

        check(refused, shown(path), "LIMIT_EXCEEDED")
        details = dict(refused.metadata)
        assert (int(details["limit"]), int(details["actual"])) == (chars - 1, chars)

    @pytest.mark.parametrize(
        ("field", "count", "value"),
        [
            ("conversation_ids", 101, str(UUID(int=7))),
            ("agent_ids", 101, str(UUID(int=7))),
            ("tool_names", 101, "t"),
            ("exclude_event_ids", 1001, str(UUID(int=7))),
            ("types", 1000, 1),
            ("roles", 1000, 1),
        ],
    )
    async def test_of_search_filters_are_limited(
        self, tenant: Tenant, field: str, count: int, value: Any
    ) -> None:
        request = search_pb.SearchEventsRequest(query="x")
        getattr(request.filter, field).extend([value] * count)

        refused = await failure(tenant.raw.call("SearchEvents", request))

        check(refused, f"filter.{field}", "LIMIT_EXCEEDED")

    async def test_of_a_message_of_seventeen_mebibytes_is_refused(self, tenant: Tenant) -> None:
        events = [user("x" * MEBIBYTE) for _ in range(17)]

        refused = await failure(append(tenant.raw, "", *events))

        check(refused, "events", "LIMIT_EXCEEDED")
        assert [c async for c in tenant.client.conversations.list()] == []


class TestRequired:
    @pytest.mark.parametrize(
        ("name", "request_", "field"),
        [
            ("GetConversation", None, "conversation_id"),
            ("UpdateConversation", None, "conversation.conversation_id"),
            ("EndConversation", None, "conversation_id"),
            ("DeleteConversation", None, "conversation_id"),
            ("RestoreConversation", None, "conversation_id"),
            ("AppendEvents", None, "events"),
            ("BatchGetEvents", None, "event_ids"),
            ("ListEvents", None, "conversation_id"),
            ("SearchEvents", None, "query"),
            ("SearchEvents", search_pb.SearchEventsRequest(query=" \t\n"), "query"),
            (
                "SearchEvents",
                search_pb.SearchEventsRequest(
                    query="x", freshness=search_pb.SEARCH_FRESHNESS_READ_YOUR_WRITES
                ),
                "filter.conversation_ids",
            ),
            ("CreateAgent", None, "agent.display_name"),
            ("GetAgent", None, "agent_id"),
            ("CreateApiKey", None, "scopes"),
            ("RevokeApiKey", None, "api_key_id"),
        ],
    )
    async def test_fields_must_be_given(
        self, tenant: Tenant, name: str, request_: Any, field: str
    ) -> None:
        request = request_ if request_ is not None else new(methods()[name].input_type)

        check(await failure(tenant.raw.call(name, request)), field)

    @pytest.mark.parametrize(
        ("event", "field"),
        [
            (event_pb.NewEvent(), "body"),
            (event_pb.NewEvent(message=res.MessageBody(content="x")), "message.role"),
            (
                event_pb.NewEvent(tool_call=res.ToolCallBody(tool_name="t")),
                "tool_call.tool_call_id",
            ),
            (
                event_pb.NewEvent(tool_call=res.ToolCallBody(tool_call_id="c")),
                "tool_call.tool_name",
            ),
            (event_pb.NewEvent(tool_result=res.ToolResultBody()), "tool_result.tool_call_id"),
            (event_pb.NewEvent(error=res.ErrorBody()), "error.error_type"),
        ],
        ids=["body", "role", "call id", "tool name", "result's call id", "error type"],
    )
    async def test_events_must_be_whole(
        self, tenant: Tenant, event: event_pb.NewEvent, field: str
    ) -> None:
        stored = await append(tenant.raw, "", user("before"))
        before = await state(tenant.raw, stored.conversation_id)

        refused = await failure(append(tenant.raw, stored.conversation_id, user("ok"), event))

        check(refused, f"events[1].{field}")
        assert await state(tenant.raw, stored.conversation_id) == before


class TestPageTokens:
    @pytest.mark.parametrize(
        "token",
        ["x", "!!!", "💣", "bnVsbA", "W10", "WzFd", "e30", "A" * 100_000, "W1tbW1tbW1tbW1tb", " "],
    )
    @pytest.mark.parametrize(
        "name", ["ListConversations", "ListEvents", "ListAgents", "ListApiKeys"]
    )
    async def test_of_garbage_are_refused(self, tenant: Tenant, name: str, token: str) -> None:
        request = await VALID[name](tenant)
        request.page_token = token

        refused = await failure(tenant.raw.call(name, request))

        check(refused, "page_token", "PAGE_TOKEN_INVALID")

    @pytest.mark.parametrize(
        ("name", "cursor"),
        [
            ("ListEvents", ["9" * 5000]),
            ("ListEvents", ["9" * 30]),
            ("ListEvents", ["-1"]),
            ("ListEvents", ["1", "2"]),
            ("ListConversations", ["yesterday", str(uuid4())]),
            ("ListConversations", ["2024-01-01T00:00:00", str(uuid4())]),
            ("ListConversations", ["0001-01-01T00:00:00+23:59", str(uuid4())]),
            ("ListConversations", ["9999-12-31T23:59:59-23:59", str(uuid4())]),
            ("ListConversations", ["2024-01-01T00:00:00+00:00", "17"]),
        ],
    )
    async def test_forged_for_their_query_grant_nothing_and_break_nothing(
        self, tenant: Tenant, name: str, cursor: list[str]
    ) -> None:
        from uuid import UUID

        request = await VALID[name](tenant)
        request.page_token = encode_page_token(request, UUID(tenant.tenant_id), cursor)

        try:
            answer = await tenant.raw.call(name, request)
        except Exception as error:  # noqa: BLE001 - judged below
            check(error.failure, "page_token", "PAGE_TOKEN_INVALID")  # type: ignore[attr-defined]
        else:
            assert answer.ByteSize() == 0


class TestTransport:
    @pytest.mark.parametrize("name", unary_methods())
    async def test_bytes_that_are_no_message_are_refused(self, tenant: Tenant, name: str) -> None:
        refused = await failure(tenant.raw.call(name, b"\xff\xff\xff\xff"))

        check(refused, "request")

    async def test_text_that_is_not_utf8_is_refused(self, tenant: Tenant) -> None:
        refused = await failure(tenant.raw.call("GetConversation", b"\x0a\x02\xc3\x28"))

        check(refused, "request")

    @pytest.mark.parametrize("credentials", [True, False])
    @pytest.mark.parametrize(
        "path",
        [
            "/annals.storage.v1.EventService/Explode",
            "/annals.storage.v9.EventService/AppendEvents",
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            "/nonsense",
        ],
    )
    async def test_unknown_methods_are_refused(
        self, tenant: Tenant, path: str, credentials: bool
    ) -> None:
        metadata = tenant.raw.metadata() if credentials else ()

        refused = await failure(tenant.raw.bytes_call(path, b"x", metadata=metadata))

        assert refused.domain == "annals"
        assert (refused.code.name, refused.reason) in (
            {("UNIMPLEMENTED", "METHOD_UNKNOWN")}
            if credentials
            else {("UNIMPLEMENTED", "METHOD_UNKNOWN"), ("UNAUTHENTICATED", "CREDENTIALS_INVALID")}
        )

    async def test_a_deadline_that_passes_in_the_line_stores_nothing(
        self, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        room = await empty_conversation(tenant)
        with psycopg.connect(postgres.admin_url) as connection:
            connection.execute(
                "SELECT FROM annals.conversations WHERE conversation_id = %s FOR UPDATE", [room]
            )
            first = asyncio.create_task(append(tenant.raw, room, user("before")))
            await eventually(
                lambda: waiting_for_lock(postgres, "append_lock"), lambda now: now == 1
            )
            request = event_pb.AppendEventsRequest(conversation_id=room, events=[user("late")])

            refused = await failure(tenant.raw.call("AppendEvents", request, timeout_s=0.1))

        await first
        await append(tenant.raw, room, user("after"))
        assert refused.code is grpc.StatusCode.DEADLINE_EXCEEDED
        stored = [event.message.content for event in await listed(tenant, room)]
        assert stored == ["before", "after"]

    async def test_odd_request_ids_and_metadata_do_no_harm(self, tenant: Tenant) -> None:
        method = methods()["ListConversations"]
        metadata = (
            *tenant.raw.metadata(),
            ("x-request-id", "a" * 500 + ' {}\\"<script>'),
            ("x-binary-bin", b"\x00\xff"),
        )

        await tenant.raw.bytes_call(path_of(method), b"", metadata=metadata)
