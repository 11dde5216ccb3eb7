"""Whatever id field of whatever method: a foreign id answers exactly like a missing one.

The probes are generated from the descriptors, so a new method without a valid request here, or
a new id field without a foreign value, fails.
"""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.json_format import MessageToDict
from tests.support.appending import append, ids
from tests.support.end_users import create_signer
from tests.support.messages import Path, dotted, is_string, leaf_fields, put
from tests.support.raw import Failure, failure, methods
from tests.support.scratch import run
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.topics import plant_topic
from tests.support.valid_requests import VALID, send, summary_id_of
from tests.support.waiting import eventually

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import erasure_service_pb2 as erasure_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import memory_service_pb2 as memory_pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import tool_call, user
from annals_local.postgres import LocalPostgres

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
WORDS = "the lighthouse keeper counts heron feathers"
NO_IDS = frozenset({"display_name"})


def id_fields() -> list[tuple[str, Path]]:
    """Every field of every request that names something."""
    return [
        (name, path)
        for name, method in methods().items()
        for path in leaf_fields(method.input_type)
        if is_string(path) and re.search(r"(_ids?|_key)$", path[-1].name)
    ]


PROBES = id_fields()


class Foreign:
    """Something of every kind that belongs to another tenant."""

    def __init__(self, tenant: Tenant, values: dict[str, str]) -> None:
        self.tenant, self.values = tenant, values


@pytest.fixture(scope="module")
async def foreign(storage: RunningStorage) -> Any:
    async with fresh_tenant(storage) as theirs:
        client = theirs.client
        agent = await client.agents.create("theirs")
        key = await client.keys.create("theirs", tenant_id=theirs.tenant_id)
        room = await client.conversations.create(agent_id=agent.agent_id, user_id="their-user")
        await client.conversations.create(session_id="their-session")
        signer = await create_signer(theirs)
        at_provider = res.Conversation(
            org_id="their-org", provider_conversation_id="their-conversation"
        )
        await theirs.raw.call(
            "CreateConversation",
            conversation_pb.CreateConversationRequest(conversation=at_provider),
        )
        request_id = str(uuid4())
        stored = await append(
            theirs.raw,
            room.conversation_id,
            user(WORDS, idempotency_key="their-key", provider_response_id="their-response"),
            tool_call("their-call", "t"),
            request_id=request_id,
        )
        turn = event_pb.StoreTurnRequest(
            host_conversation_id="their-host", turn_id="their-turn", event=user(WORDS)
        )
        turned = (await theirs.raw.call("StoreTurn", turn)).event
        memory = memory_pb.StoreMemoryRequest(
            memory=res.Memory(conversation_id=room.conversation_id, content=WORDS),
            idempotency_key="their-key",
        )
        remembered = (await theirs.raw.call("StoreMemory", memory)).memory
        attached = await theirs.raw.call(
            "CreateAttachment", await VALID["CreateAttachment"](theirs)
        )
        related = await theirs.raw.call(
            "CreateRelationship", await VALID["CreateRelationship"](theirs)
        )
        erased = await theirs.raw.call("EraseUser", erasure_pb.EraseUserRequest(user_id="nobody"))
        summary_id = await summary_id_of(theirs)
        # Nothing of theirs changes by itself any more.
        await eventually(client.index.status, lambda status: status.pending_count == 0)
        topic_id = await plant_topic(storage, theirs, room.conversation_id)
        yield Foreign(
            theirs,
            {
                "tenant_id": theirs.tenant_id,
                "agent_id": agent.agent_id,
                "agent_ids": agent.agent_id,
                "api_key_id": key.api_key.api_key_id,
                "conversation_id": room.conversation_id,
                "conversation_ids": room.conversation_id,
                "event_id": ids(stored)[0],
                "event_ids": ids(stored)[0],
                "exclude_event_ids": ids(stored)[0],
                "entry_ids": ids(stored)[0],
                "parent_event_id": ids(stored)[0],
                "message_event_id": ids(stored)[0],
                "new_conversation_id": room.conversation_id,
                "user_id": "their-user",
                "session_id": "their-session",
                "request_id": request_id,
                "idempotency_key": "their-key",
                "provider_response_id": "their-response",
                "last_response_id": "their-response",
                "org_id": "their-org",
                "provider_conversation_id": "their-conversation",
                "signing_key_id": signer.key_id,
                "tool_call_id": "their-call",
                "host_conversation_id": "their-host",
                "turn_id": "their-turn",
                "turn_key": turned.turn_key,
                "attachment_id": attached.attachment.attachment_id,
                "relationship_id": related.relationship.relationship_id,
                "provider_log_id": str(uuid4()),
                "memory_id": remembered.memory_id,
                "summary_id": summary_id,
                "run_id": str(uuid4()),
                "receipt_id": erased.receipt.receipt_id,
                "topic_id": topic_id,
                "topic_ids": topic_id,
            },
        )


def missing_like(value: str) -> str:
    """Something of the same shape that never existed."""
    return _ID.sub(str(uuid4()), value) if _ID.match(value) else f"none{value[5:]}"


def shape(outcome: Any, *sent: str) -> Any:
    """An outcome without what must differ: echoed ids, fresh ids, times."""
    if isinstance(outcome, Failure):
        uuids = _ID.findall(outcome.message)
        return outcome.without(*sent, *uuids)
    text = repr(MessageToDict(outcome, preserving_proto_field_name=True))
    for value in sent:
        text = text.replace(value, "<id>")
    text = re.sub(
        r"'(search_time_ms|api_key_secret|secret|digest|subject)': [^,}]+", r"'\1': …", text
    )
    return _TIME.sub("<time>", _ID.sub("<id>", text))


async def outcome_of(tenant: Tenant, name: str, path: Path, value: str) -> Any:
    request = await VALID[name](tenant)
    put(request, path, value)
    if dotted(path).endswith("tool_call.tool_call_id"):
        put(request, (*path[:-1], path[-1].containing_type.fields_by_name["tool_name"]), "t")
    try:
        return await send(tenant, name, request)
    except Exception:  # noqa: BLE001 - whatever it was, it must fail again
        return await failure(send(tenant, name, request))


def rows_of(postgres: LocalPostgres, tenant_id: str) -> dict[str, Any]:
    """Everything a tenant has, the outbox aside."""
    names = run(
        postgres.admin_url,
        "SELECT tablename FROM pg_tables WHERE schemaname = 'annals' AND tablename <> 'outbox'",
    )
    query = "SELECT * FROM annals.{} AS t WHERE tenant_id = %s ORDER BY t::text"
    return {
        row["tablename"]: run(postgres.admin_url, query.format(row["tablename"]), [tenant_id])
        for row in names
    }


def test_every_method_has_a_valid_request() -> None:
    assert set(VALID) == set(methods())


async def test_every_id_field_has_a_foreign_value(foreign: Foreign) -> None:
    assert {path[-1].name for _, path in PROBES} == set(foreign.values)


@pytest.mark.parametrize(
    ("name", "path"), PROBES, ids=[f"{name}.{dotted(path)}" for name, path in PROBES]
)
async def test_a_foreign_id_answers_like_a_missing_one(
    tenant: Tenant, foreign: Foreign, postgres: LocalPostgres, name: str, path: Path
) -> None:
    theirs = foreign.values[path[-1].name]
    nobodys = missing_like(theirs)
    before = rows_of(postgres, foreign.tenant.tenant_id)

    of_theirs = await outcome_of(tenant, name, path, theirs)
    of_nobodys = await outcome_of(tenant, name, path, nobodys)

    assert shape(of_theirs, theirs, nobodys) == shape(of_nobodys, theirs, nobodys)
    assert WORDS not in repr(of_theirs)
    assert rows_of(postgres, foreign.tenant.tenant_id) == before


async def test_nothing_of_others_is_listed_or_found(tenant: Tenant, foreign: Foreign) -> None:
    client = tenant.client

    assert [c async for c in client.conversations.list(show_deleted=True)] == []
    assert [a async for a in client.agents.list()] == []
    for mode in ("dense", "lexical", "hybrid"):
        found = await client.search.events(WORDS, mode=mode)
        assert (list(found.hits), found.unindexed_count) == ([], 0)
    theirs = await foreign.tenant.client.search.events(WORDS)
    assert theirs.hits


async def test_the_probe_detects_an_answer_that_differs(tenant: Tenant, foreign: Foreign) -> None:
    """Its teeth: an own id, which does answer differently, is told apart."""
    mine = (await append(tenant.raw, "", user("x"))).conversation_id
    path = next(p for n, p in PROBES if n == "GetConversation")

    of_mine = await outcome_of(tenant, "GetConversation", path, mine)
    of_theirs = await outcome_of(tenant, "GetConversation", path, foreign.values["conversation_id"])

    assert shape(of_mine, mine) != shape(of_theirs, foreign.values["conversation_id"])
