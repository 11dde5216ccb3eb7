"""Who reaches what: every method against every kind of caller.

Methods come from the descriptors, so a new one is refused to end users here until it is listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import grpc
import pytest
from tests.support.end_users import (
    Metadata,
    Signer,
    create_signer,
    metadata_of,
    publishable_key,
)
from tests.support.messages import Path, leaf_fields, put
from tests.support.raw import Failure, Raw, failure, methods
from tests.support.scratch import run
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.valid_requests import ADMIN_ONLY, VALID, WORKER_ONLY, send

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_local.postgres import LocalPostgres

MINE, ALICE, BOB = "my-session", "alice", "bob"
OWN = frozenset(
    (
        *("GetConversation", "EndConversation", "DeleteConversation"),
        *("AppendEvents", "StreamAppendEvents", "GetEvent", "BatchGetEvents", "ListEvents"),
        *("ListPeriod", "WatchEvents", "GetSummarySource", "ListSummaries"),
        *("ListTopics", "ListTopicEvents", "ListTopicPeriods"),
    )
)
"""What end users do with a conversation of theirs."""
OWN_BY_SERVER = frozenset(("StoreTurn",))
"""What only a server does for them: it may replace what the server wrote."""
OPEN = frozenset(
    (
        *("GetCaller", "CreateConversation", "ListConversations", "GetCurrentConversation"),
        "MergeSession",
    )
)
"""Names no conversation: what of it end users reach is in test_end_users, test_merge_session."""
OTHERS = sorted(set(methods()) - OWN - OWN_BY_SERVER - OPEN - ADMIN_ONLY)


@dataclass(frozen=True, slots=True)
class Site:
    """A tenant with an agent of every mode, a publishable key of each, and a signing key."""

    storage: RunningStorage
    tenant: Tenant
    agents: dict[str, str]
    keys: dict[str, str]
    signer: Signer

    def acting(self, metadata: Metadata) -> Tenant:
        """The same tenant, its raw channel with other metadata."""
        raw = ActingRaw(self.tenant.raw, metadata)
        return Tenant(self.tenant.tenant_id, self.tenant.api_key, self.tenant.client, raw)


class ActingRaw(Raw):
    """A channel of somebody else's, with metadata of its own."""

    def __init__(self, raw: Raw, metadata: Metadata) -> None:
        self.channel, self.api_key, self._metadata = raw.channel, "", metadata

    def metadata(self, api_key: str | None = None) -> Metadata:  # noqa: ARG002
        return self._metadata


@pytest.fixture(scope="module")
async def site(storage: RunningStorage) -> Any:
    async with fresh_tenant(storage) as tenant:
        yield await site_of(storage, tenant)


@pytest.fixture(scope="module")
async def other_site(storage: RunningStorage) -> Any:
    async with fresh_tenant(storage) as tenant:
        yield await site_of(storage, tenant)


async def site_of(storage: RunningStorage, tenant: Tenant) -> Site:
    modes = {
        "trusted": res.END_USER_MODE_TRUSTED,
        "another": res.END_USER_MODE_TRUSTED,
        "signed": res.END_USER_MODE_SIGNED,
        "anonymous": res.END_USER_MODE_ANONYMOUS,
    }
    agents = {}
    for name, mode in modes.items():
        agent = res.Agent(display_name=name, end_user_mode=mode, provider_logs_enabled=True)
        made = await tenant.raw.call("CreateAgent", pb.CreateAgentRequest(agent=agent))
        agents[name] = made.agent.agent_id
    keys = {name: await publishable_key(tenant, agent_id) for name, agent_id in agents.items()}
    return Site(storage, tenant, agents, keys, await create_signer(tenant))


@dataclass(frozen=True, slots=True)
class Actor:
    """Who calls, about a conversation of which owner, and what becomes of it.

    `own`, `others`: the expected outcome of a method of `OWN` and of any other: a reason, "" for
    success, LIKE_MISSING for what an id that never existed answers.
    """

    metadata: Callable[[Site, Site], Metadata]
    own: str
    others: str
    agent: str = "trusted"
    owner: dict[str, str] = field(default_factory=lambda: {"session_id": MINE})
    server: bool = False


LIKE_MISSING = "LIKE_MISSING"
USERS = {"user_id": ALICE}


def key(name: str, **end_user: str) -> Callable[[Site, Site], Metadata]:
    """With the publishable key of an agent."""
    return lambda site, _: metadata_of(site.keys[name], **end_user)


def proved(name: str, user_id: str, **end_user: str) -> Callable[[Site, Site], Metadata]:
    """With the publishable key of an agent and a signed token."""
    return lambda site, _: metadata_of(site.keys[name], token=site.signer.sign(user_id), **end_user)


def server(**end_user: str) -> Callable[[Site, Site], Metadata]:
    """With the tenant's secret key."""
    return lambda site, _: metadata_of(site.tenant.api_key, **end_user)


def owned(**fields: Any) -> Actor:
    """One who reaches the conversation as its owner."""
    return Actor(own="", others="SCOPE_MISSING", **fields)


def strange(**fields: Any) -> Actor:
    """An end user whose conversation it is not."""
    return Actor(own=LIKE_MISSING, others="SCOPE_MISSING", **fields)


def refused(reason: str, **fields: Any) -> Actor:
    """One who is refused whatever the call."""
    return Actor(own=reason, others=reason, **fields)


ACTORS: dict[str, Actor] = {
    "nobody": refused("CREDENTIALS_INVALID", metadata=lambda *_: ()),
    "wrong key": refused(
        "CREDENTIALS_INVALID", metadata=lambda site, _: metadata_of(site.tenant.api_key + "x")
    ),
    "wrong publishable key": refused(
        "CREDENTIALS_INVALID",
        metadata=lambda site, _: metadata_of(site.keys["trusted"] + "x", session_id=MINE),
    ),
    "secret key": Actor(metadata=server(), own="", others="", server=True),
    "publishable key without an end user": refused("FIELD_INVALID", metadata=key("trusted")),
    "own session": owned(metadata=key("trusted", session_id=MINE)),
    "another session": strange(metadata=key("trusted", session_id="another")),
    "a user, of a session's": strange(metadata=key("trusted", user_id=ALICE)),
    "a user named like the session": strange(metadata=key("trusted", user_id=MINE)),
    "own session and a user": owned(metadata=key("trusted", session_id=MINE, user_id=ALICE)),
    "own session, another agent's key": strange(metadata=key("another", session_id=MINE)),
    "own session, another tenant's key": strange(
        metadata=lambda _, other: metadata_of(other.keys["trusted"], session_id=MINE)
    ),
    "trusted user": owned(metadata=key("trusted", user_id=ALICE), owner=USERS),
    "another trusted user": strange(metadata=key("trusted", user_id=BOB), owner=USERS),
    "a session, of a user's": strange(metadata=key("trusted", session_id=MINE), owner=USERS),
    "a session named like the user": strange(
        metadata=key("trusted", session_id=ALICE), owner=USERS
    ),
    "trusted user, another agent's key": strange(
        metadata=key("another", user_id=ALICE), owner=USERS
    ),
    "proved user of a trusting agent": owned(metadata=proved("trusted", ALICE), owner=USERS),
    "proved user": owned(metadata=proved("signed", ALICE), owner=USERS, agent="signed"),
    "another proved user": strange(metadata=proved("signed", BOB), owner=USERS, agent="signed"),
    "proved user of another tenant": refused(
        "USER_TOKEN_INVALID",
        metadata=lambda site, other: metadata_of(
            site.keys["signed"], token=other.signer.sign(ALICE)
        ),
        owner=USERS,
        agent="signed",
    ),
    "unproved user of a signed agent": refused(
        "USER_TOKEN_REQUIRED", metadata=key("signed", user_id=ALICE), owner=USERS, agent="signed"
    ),
    "session of a signed agent": owned(metadata=key("signed", session_id=MINE), agent="signed"),
    "user of an anonymous agent": refused(
        "FIELD_INVALID", metadata=key("anonymous", user_id=ALICE), agent="anonymous"
    ),
    "proved user of an anonymous agent": refused(
        "FIELD_INVALID", metadata=proved("anonymous", ALICE), agent="anonymous"
    ),
    "session of an anonymous agent": owned(
        metadata=key("anonymous", session_id=MINE), agent="anonymous"
    ),
    "server for the own session": owned(metadata=server(session_id=MINE), server=True),
    "server for another session": strange(metadata=server(session_id="another"), server=True),
    "server for the user": owned(metadata=server(user_id=ALICE), owner=USERS, server=True),
    "server for another user": strange(metadata=server(user_id=BOB), owner=USERS, server=True),
    "server for an unproved user of a signed agent": strange(
        metadata=server(user_id=ALICE), owner=USERS, agent="signed", server=True
    ),
    "server for a proved user of a signed agent": owned(
        metadata=lambda site, _: metadata_of(site.tenant.api_key, token=site.signer.sign(ALICE)),
        owner=USERS,
        agent="signed",
        server=True,
    ),
    "another tenant's secret key": Actor(
        metadata=lambda _, other: metadata_of(other.tenant.api_key),
        own=LIKE_MISSING,
        others=LIKE_MISSING,
        server=True,
    ),
}


def give(postgres: LocalPostgres, site: Site, actor: Actor) -> None:
    """Make the conversations that were made since the last call the owner's."""
    owner = {"session_id": None, "user_id": None, **actor.owner}
    run(
        postgres.admin_url,
        "UPDATE annals.conversations SET org_id = 'given', agent_id = %(agent)s,"
        " session_id = %(session_id)s, user_id = %(user_id)s"
        " WHERE tenant_id = %(tenant)s AND org_id IS NULL",
        {"tenant": site.tenant.tenant_id, "agent": site.agents[actor.agent], **owner},
    )


def is_reference(path: Path) -> bool:
    return path[-1].name in {
        "conversation_id", "event_id", "event_ids", "conversation_ids", "message_event_id"
    }  # fmt: skip


def missing_like(name: str, request: Any) -> Any:
    """The same request about ids that never existed."""
    copy = type(request)()
    copy.CopyFrom(request)
    for path in leaf_fields(methods()[name].input_type):
        if is_reference(path) and _is_set(request, path):
            put(copy, path, str(uuid4()))
    return copy


def _is_set(request: Any, path: Path) -> bool:
    target = request
    for step in path:
        target = getattr(target, step.name)
        if step.is_repeated and step is not path[-1]:
            if not target:
                return False
            target = target[0]
    return bool(target)


async def outcome_of(tenant: Tenant, name: str, request: Any) -> Any:
    try:
        return await send(tenant, name, request)
    except Exception:  # noqa: BLE001 - whatever it was, it must fail again
        return await failure(send(tenant, name, request))


def ids_in(request: Any, name: str) -> list[str]:
    found: list[str] = []
    for path in leaf_fields(methods()[name].input_type):
        if is_reference(path) and _is_set(request, path):
            target = request
            for step in path:
                target = getattr(target, step.name)
            found += [target] if isinstance(target, str) else list(target)
    return found


async def check(
    site: Site, other: Site, postgres: LocalPostgres, name: str, actor: Actor, expected: str
) -> None:
    request = await VALID[name](site.tenant)
    give(postgres, site, actor)
    caller = site.acting(actor.metadata(site, other))
    if expected == LIKE_MISSING:
        await check_like_missing(caller, name, request)
    elif expected:
        answer = await failure(send(caller, name, request))
        assert answer.reason == expected, answer
    else:
        await send(caller, name, request)


async def check_like_missing(caller: Tenant, name: str, request: Any) -> None:
    missing = missing_like(name, request)
    sent = [*ids_in(request, name), *ids_in(missing, name)]

    of_theirs = await outcome_of(caller, name, request)
    of_nobodys = await outcome_of(caller, name, missing)

    assert blank(of_theirs, sent) == blank(of_nobodys, sent)
    if name != "BatchGetEvents":
        assert of_theirs.code is grpc.StatusCode.NOT_FOUND


def blank(outcome: Any, sent: list[str]) -> Any:
    """An outcome without the ids that were sent."""
    if isinstance(outcome, Failure):
        return outcome.without(*sent)
    text = str(outcome)
    for value in sent:
        text = text.replace(value, "<id>")
    return text


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("name", sorted(OWN))
async def test_own_conversations(
    site: Site, other_site: Site, postgres: LocalPostgres, name: str, actor: str
) -> None:
    who = ACTORS[actor]

    await check(site, other_site, postgres, name, who, who.own)


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("name", sorted(OWN_BY_SERVER))
async def test_own_conversations_by_the_server(
    site: Site, other_site: Site, postgres: LocalPostgres, name: str, actor: str
) -> None:
    who = ACTORS[actor]

    await check(site, other_site, postgres, name, who, who.own if who.server else who.others)


@pytest.mark.parametrize("name", OTHERS)
async def test_all_the_rest_is_the_tenants(
    site: Site, other_site: Site, postgres: LocalPostgres, name: str
) -> None:
    # Across tenants: test_foreign_ids, for every field of every method.
    refused = {k: who for k, who in ACTORS.items() if who.others not in {"", LIKE_MISSING}}
    request = await VALID[name](site.tenant)

    answers = {}
    for actor, who in refused.items():
        give(postgres, site, who)
        caller = site.acting(who.metadata(site, other_site))
        answers[actor] = (await failure(send(caller, name, request))).reason

    assert answers == {actor: who.others for actor, who in refused.items()}


def test_every_method_that_names_a_conversation_or_event_is_here() -> None:
    naming = {
        name
        for name, method in methods().items()
        if any(is_reference(path) for path in leaf_fields(method.input_type))
    }

    # What workers call is in test_workers.
    assert naming - {"CreateConversation"} <= OWN | OWN_BY_SERVER | set(OTHERS) | WORKER_ONLY
    assert set(methods()) >= OWN | OWN_BY_SERVER | OPEN
