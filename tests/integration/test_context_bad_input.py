"""Whatever is wrong with a request to the context service: a precise status."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from tests.support.context import RunningContext
from tests.support.storage import Tenant

from annals.context.v1 import context_service_pb2 as pb
from annals.context.v1 import format_service_pb2 as format_pb
from annals.storage.v1 import resources_pb2 as res

CONVERSATION = "0199c7a2-7d4e-7b1e-9c55-0242ac120002"
PREPARE = "/annals.context.v1.ContextService/PrepareContext"
EXPAND = "/annals.context.v1.ContextService/ExpandDetail"
FOCUS = "/annals.context.v1.ContextService/FocusOn"
SNIPPETS = "/annals.context.v1.ContextService/GetRelevantSnippets"
RETRIEVE = "/annals.context.v1.ContextService/SearchAndRetrieve"
ACROSS = "/annals.context.v1.ContextService/GetContextFromAllConversations"
RENDER = "/annals.context.v1.FormatService/Render"
PARSE = "/annals.context.v1.FormatService/Parse"
COUNT = "/annals.context.v1.FormatService/CountTokens"


def prepare(**values: Any) -> pb.PrepareContextRequest:
    return pb.PrepareContextRequest(
        **{"conversation_id": CONVERSATION, "budget_tokens": 1_000, **values}
    )


def snippets(**values: Any) -> pb.GetRelevantSnippetsRequest:
    return pb.GetRelevantSnippetsRequest(query="x", **values)


def across(**values: Any) -> pb.GetContextFromAllConversationsRequest:
    return pb.GetContextFromAllConversationsRequest(query="x", **values)


def backwards() -> dict[str, Any]:
    """A time range that ends before it begins."""
    return {"start_time": {"seconds": 2}, "end_time": {"seconds": 1}}


def message(role: int = res.ROLE_USER, content: str = "x") -> res.Event:
    return res.Event(message=res.MessageBody(role=role, content=content))  # type: ignore[arg-type]


def parse(*messages: Any) -> format_pb.ParseRequest:
    return format_pb.ParseRequest(payload=json.dumps(messages))


CASES: list[tuple[str, Message | bytes, str, str]] = [
    (PREPARE, prepare(conversation_id=""), "conversation_id", "FIELD_INVALID"),
    (PREPARE, prepare(conversation_id="x"), "conversation_id", "FIELD_INVALID"),
    (PREPARE, prepare(budget_tokens=0), "budget_tokens", "FIELD_INVALID"),
    (PREPARE, prepare(budget_tokens=-5), "budget_tokens", "FIELD_INVALID"),
    (PREPARE, prepare(budget_tokens=2_000_000_000), "budget_tokens", "FIELD_INVALID"),
    (PREPARE, prepare(response_reserve_tokens=-1), "response_reserve_tokens", "FIELD_INVALID"),
    (PREPARE, prepare(response_reserve_tokens=1_000), "response_reserve_tokens", "FIELD_INVALID"),
    (PREPARE, prepare(query="a\x00b"), "query", "FIELD_INVALID"),
    (PREPARE, prepare(query="a" * 40_000), "query", "LIMIT_EXCEEDED"),
    (PREPARE, prepare(current_message="a\x00b"), "current_message", "FIELD_INVALID"),
    (PREPARE, prepare(current_message="a" * 1_100_000), "current_message", "LIMIT_EXCEEDED"),
    (PREPARE, prepare(model="m" * 201), "model", "LIMIT_EXCEEDED"),
    (PREPARE, prepare(format=99), "format", "FIELD_INVALID"),
    (PREPARE, prepare(strategy=99), "strategy", "FIELD_INVALID"),
    (PREPARE, prepare(recent_events=0), "recent_events", "FIELD_INVALID"),
    (PREPARE, prepare(recent_events=1_001), "recent_events", "FIELD_INVALID"),
    (PREPARE, prepare(relevant_events=-1), "relevant_events", "FIELD_INVALID"),
    (PREPARE, prepare(snippet_chars=0), "snippet_chars", "FIELD_INVALID"),
    (PREPARE, b"\xff\xff\xff", "request", "FIELD_INVALID"),
    (EXPAND, pb.ExpandDetailRequest(handles=["#1"]), "view", "FIELD_INVALID"),
    (EXPAND, pb.ExpandDetailRequest(view="x", handles=["#1"]), "view", "VIEW_INVALID"),
    (EXPAND, pb.ExpandDetailRequest(view="x", handles=["1"]), "handles[0]", "FIELD_INVALID"),
    (EXPAND, pb.ExpandDetailRequest(view="x", handles=["#1"] * 101), "handles", "LIMIT_EXCEEDED"),
    (FOCUS, pb.FocusOnRequest(view="x", query="a\x00"), "query", "FIELD_INVALID"),
    (SNIPPETS, pb.GetRelevantSnippetsRequest(), "query", "FIELD_INVALID"),
    (SNIPPETS, snippets(max_tokens=-1), "max_tokens", "FIELD_INVALID"),
    (SNIPPETS, snippets(strategy=9), "strategy", "FIELD_INVALID"),
    (SNIPPETS, snippets(scope={"agent_id": "x"}), "scope.agent_id", "FIELD_INVALID"),
    (SNIPPETS, snippets(scope={"user_id": "u" * 257}), "scope.user_id", "LIMIT_EXCEEDED"),
    (
        SNIPPETS,
        snippets(scope={"conversation_ids": [CONVERSATION, "x"]}),
        "scope.conversation_ids[1]",
        "FIELD_INVALID",
    ),
    (SNIPPETS, snippets(scope=backwards()), "scope.end_time", "FIELD_INVALID"),
    (
        RETRIEVE,
        pb.SearchAndRetrieveRequest(query="x", auto_limit=101),
        "auto_limit",
        "FIELD_INVALID",
    ),
    (RETRIEVE, pb.SearchAndRetrieveRequest(query="x", model="m" * 201), "model", "LIMIT_EXCEEDED"),
    (ACROSS, across(), "conversation_id", "FIELD_INVALID"),
    (ACROSS, across(scope=9), "scope", "FIELD_INVALID"),
    (ACROSS, across(scope=3, limit=21), "limit", "FIELD_INVALID"),
    (
        ACROSS,
        across(scope=3, snippets_per_conversation=101),
        "snippets_per_conversation",
        "FIELD_INVALID",
    ),
    (RENDER, format_pb.RenderRequest(), "events", "FIELD_INVALID"),
    (RENDER, format_pb.RenderRequest(events=[res.Event()]), "events[0].body", "FIELD_INVALID"),
    (
        RENDER,
        format_pb.RenderRequest(events=[message(), message(role=17)]),
        "events[1].message.role",
        "FIELD_INVALID",
    ),
    (RENDER, format_pb.RenderRequest(events=[message()] * 10_001), "events", "LIMIT_EXCEEDED"),
    (RENDER, format_pb.RenderRequest(events=[message()], format=9), "format", "FIELD_INVALID"),  # type: ignore[arg-type]
    (PARSE, format_pb.ParseRequest(), "payload", "FIELD_INVALID"),
    (PARSE, format_pb.ParseRequest(payload="{not json"), "payload", "FIELD_INVALID"),
    (PARSE, format_pb.ParseRequest(payload="7"), "payload", "FIELD_INVALID"),
    (PARSE, format_pb.ParseRequest(payload="[]", format=2), "format", "FIELD_INVALID"),  # type: ignore[arg-type]
    (PARSE, format_pb.ParseRequest(payload="[{}]", format=3), "payload[0].role", "FIELD_INVALID"),  # type: ignore[arg-type]
    (PARSE, format_pb.ParseRequest(payload="[{}]", format=4), "payload[0].parts", "FIELD_INVALID"),  # type: ignore[arg-type]
    (PARSE, format_pb.ParseRequest(payload="[7]", format=5), "payload[0]", "FIELD_INVALID"),  # type: ignore[arg-type]
    (PARSE, parse({"role": "pirate", "content": "x"}), "payload[0].role", "FIELD_INVALID"),
    (PARSE, parse({"role": "user", "content": "a\x00"}), "payload[0].content", "FIELD_INVALID"),
    (PARSE, format_pb.ParseRequest(payload="[" * 100_000), "payload", "FIELD_INVALID"),
    (COUNT, format_pb.CountTokensRequest(), "texts", "FIELD_INVALID"),
    (COUNT, format_pb.CountTokensRequest(texts=["x"] * 1_001), "texts", "LIMIT_EXCEEDED"),
]


@pytest.fixture
async def channel(context: RunningContext) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(context.address) as it:
        yield it


async def failure(
    channel: grpc.aio.Channel, method: str, request: bytes, key: str
) -> tuple[grpc.StatusCode, error_details_pb2.ErrorInfo, list[str]]:
    metadata = (("authorization", f"Bearer {key}"),)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await channel.unary_unary(method)(request, metadata=metadata, timeout=20)
    status = rpc_status.from_call(refused.value)
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    assert status is not None
    for detail in status.details:
        _ = detail.Unpack(info) or detail.Unpack(bad)
    return refused.value.code(), info, [item.field for item in bad.field_violations]


@pytest.mark.parametrize(("method", "request_", "field", "reason"), CASES)
async def test_a_wrong_field_is_named(
    channel: grpc.aio.Channel,
    tenant: Tenant,
    method: str,
    request_: Message | bytes,
    field: str,
    reason: str,
) -> None:
    raw = request_ if isinstance(request_, bytes) else request_.SerializeToString()

    code, info, fields = await failure(channel, method, raw, tenant.api_key)

    assert (code, info.domain, info.reason) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "annals",
        reason,
    )
    assert fields == [field]


@pytest.mark.parametrize("method", [PREPARE, EXPAND, SNIPPETS, RENDER, PARSE, COUNT])
@pytest.mark.parametrize("key", ["", "nonsense", "annals_AAAA"])
async def test_wrong_keys_answer_alike(channel: grpc.aio.Channel, method: str, key: str) -> None:
    code, info, _ = await failure(channel, method, b"", key)

    assert (code, info.reason) == (grpc.StatusCode.UNAUTHENTICATED, "CREDENTIALS_INVALID")


@pytest.mark.parametrize(
    "method",
    [
        "/annals.context.v1.ContextService/Nothing",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    ],
)
async def test_an_unknown_method_is_named_without_a_key(
    channel: grpc.aio.Channel, method: str
) -> None:
    code, info, _ = await failure(channel, method, b"", "")

    assert (code, info.reason) == (grpc.StatusCode.UNIMPLEMENTED, "METHOD_UNKNOWN")
