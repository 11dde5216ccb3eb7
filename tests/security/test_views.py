"""Views are good for whom they were made, for as long as they live, and as they were made."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr, ValidationError
from tests.support.context import RunningContext, running_context
from tests.support.storage import RunningStorage, Tenant, fresh_tenant

from annals_client import AsyncAnnalsClient, user
from annals_client.errors import (
    LimitExceededError,
    NotConfiguredError,
    NotFoundError,
    PermissionDeniedError,
    ViewExpiredError,
    ViewInvalidError,
)
from annals_common.errors import ViewExpiredError as Expired
from annals_common.errors import ViewInvalidError as Invalid
from annals_context.commands.preparing import Prepare
from annals_context.commands.view_tokens import View, ViewTokens
from annals_context.domain.model import DetailLevel, PayloadFormat, StrategyName
from annals_context.ports import Identity
from annals_context.settings import ContextSettings

KEY = b"k" * 32
ALICE = Identity("tenant", user_id="alice")
VIEW = View(
    request=Prepare(
        conversation_id="0199c7a2-7d4e-7b1e-9c55-0242ac120002",
        budget_tokens=1_000,
        response_reserve_tokens=0,
        query="Wo ist der Anker? ⚓",
        current_message="",
        model="",
        payload_format=PayloadFormat.TEXT,
        strategy=StrategyName.ADAPTIVE,
        recent_events=10,
        relevant_events=50,
        snippet_chars=100,
        include_tool_calls=True,
        read_your_writes=False,
        branch=3,
        pins={9: DetailLevel.FULL, 4: DetailLevel.STUB},
    ),
    own_query="",
    conversation_version=7,
    shown={"#9": DetailLevel.FULL},
)


def tokens(key: bytes = KEY, now: float = 0.0) -> ViewTokens:
    return ViewTokens(key, lifetime_seconds=60, now=lambda: now)


class TestTokens:
    def test_say_again_what_they_were_made_of(self) -> None:
        read = tokens(now=59.0).read(ALICE, tokens().issue(ALICE, VIEW))

        assert (read.request, read.shown, read.expires_at) == (VIEW.request, VIEW.shown, 60)
        assert list(read.request.pins) == [9, 4]

    def test_expire(self) -> None:
        token = tokens().issue(ALICE, VIEW)

        with pytest.raises(Expired) as refused:
            tokens(now=60.0).read(ALICE, token)
        assert refused.value.metadata == {"expire_time": "1970-01-01T00:01:00+00:00"}

    @pytest.mark.parametrize(
        "owner",
        [
            Identity("another", user_id="alice"),
            Identity("tenant", user_id="bob"),
            Identity("tenant"),
            Identity("tenant", session_id="alice"),
            Identity("tenant", agent_id="alice"),
            Identity("tenant", user_id="alice", session_id="s"),
        ],
    )
    def test_are_nobody_elses(self, owner: Identity) -> None:
        with pytest.raises(Invalid):
            tokens().read(owner, tokens().issue(ALICE, VIEW))

    def test_of_another_key_are_none(self) -> None:
        with pytest.raises(Invalid):
            tokens().read(ALICE, tokens(b"x" * 32).issue(ALICE, VIEW))

    def test_that_were_changed_anywhere_are_none(self) -> None:
        token = tokens().issue(ALICE, VIEW)
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        for i in range(len(raw)):
            changed = raw[:i] + bytes([raw[i] ^ 1]) + raw[i + 1 :]
            with pytest.raises(Invalid):
                tokens().read(ALICE, base64.urlsafe_b64encode(changed).decode().rstrip("="))
        for other in (token[:-1], token + "A", "", "A", "ä" * 8, " " + token, token[:40]):
            with pytest.raises(Invalid):
                tokens().read(ALICE, other)

    def test_that_would_be_too_long_are_not_made(self) -> None:
        words = secrets.token_hex(70_000)
        view = View(VIEW.request, words, 1, {})

        assert tokens().issue(ALICE, view) == ""

    def test_keys_must_be_keys(self) -> None:
        with pytest.raises(ValidationError, match="32 bytes in base64url"):
            ContextSettings(view_key=SecretStr("short"))


@pytest.fixture
async def view(annals: AsyncAnnalsClient) -> str:
    stored = await annals.events.append("", [user("one"), user("two")])
    return (await annals.context.prepare(stored.conversation_id, budget_tokens=200)).view


async def test_forged_and_foreign_views_answer_alike(
    annals: AsyncAnnalsClient, storage: RunningStorage, context: RunningContext, view: str
) -> None:
    forged = view[:50] + ("A" if view[50] != "A" else "B") + view[51:]
    with pytest.raises(ViewInvalidError) as of_nobody:
        await annals.context.expand(forged, ["#1"])

    async with fresh_tenant(storage) as other, _acting(storage, context, other) as theirs:
        for call in (theirs.context.expand, theirs.context.collapse):
            with pytest.raises(ViewInvalidError) as of_another:
                await call(view, ["#1"])
            assert str(of_another.value) == str(of_nobody.value)
        with pytest.raises(ViewInvalidError):
            await theirs.context.focus_on(view, "x")

    assert [it.field for it in of_nobody.value.violations] == ["view"]
    await annals.context.expand(view, ["#1"])


async def test_a_view_too_long_to_be_one_is_refused(annals: AsyncAnnalsClient) -> None:
    with pytest.raises(LimitExceededError):
        await annals.context.expand("A" * 65_537, ["#1"])


class TestEndUsers:
    @pytest.fixture
    async def alice(
        self, storage: RunningStorage, context: RunningContext, tenant: Tenant
    ) -> AsyncIterator[AsyncAnnalsClient]:
        async with _acting(storage, context, tenant, user_id="alice") as client:
            yield client

    async def test_keep_their_views_to_themselves(
        self,
        storage: RunningStorage,
        context: RunningContext,
        tenant: Tenant,
        alice: AsyncAnnalsClient,
    ) -> None:
        made = await alice.conversations.create()
        await alice.events.append(made.conversation_id, [user("one"), user("two")])
        prepared = await alice.context.prepare(
            made.conversation_id, budget_tokens=200, relevant_events=0
        )

        assert (await alice.context.expand(prepared.view, ["#1"])).context.payload
        for whom in ({"user_id": "bob"}, {"session_id": "alice"}, {}):
            async with _acting(storage, context, tenant, **whom) as other:
                with pytest.raises(ViewInvalidError):
                    await other.context.expand(prepared.view, ["#1"])
                if whom:
                    with pytest.raises(NotFoundError):
                        await other.context.prepare(
                            made.conversation_id, budget_tokens=200, relevant_events=0
                        )

    async def test_search_nothing(self, alice: AsyncAnnalsClient) -> None:
        context = alice.context
        for call in (context.snippets("x"), context.retrieve("x"), context.across("x", scope=3)):
            with pytest.raises(PermissionDeniedError):
                await call


async def test_an_aged_view_is_told_apart_from_a_forged_one(
    annals: AsyncAnnalsClient, tenant: Tenant
) -> None:
    old = ViewTokens(KEY, lifetime_seconds=60, now=lambda: time.time() - 61)
    view = old.issue(Identity(tenant.tenant_id), VIEW)

    with pytest.raises(ViewExpiredError):
        await annals.context.expand(view, ["#1"])


async def test_a_process_without_a_key_makes_no_views(
    storage: RunningStorage, tenant: Tenant, annals: AsyncAnnalsClient, view: str
) -> None:
    stored = await tenant.client.events.append("", [user("one")])
    room = stored.conversation_id
    async with (
        running_context(storage.address, view_key=SecretStr("")) as keyless,
        _acting(storage, keyless, tenant) as without,
    ):
        assert (await without.context.prepare(room, budget_tokens=100)).view == ""
        with pytest.raises(NotConfiguredError) as refused:
            await without.context.expand(view, ["#1"])
        assert refused.value.metadata == {"setting": "ANNALS_CONTEXT_VIEW_KEY"}


async def test_processes_of_one_key_go_on_from_each_others_views(
    storage: RunningStorage, annals: AsyncAnnalsClient, tenant: Tenant, view: str
) -> None:
    async with (
        running_context(storage.address) as replica,
        _acting(storage, replica, tenant) as client,
    ):
        assert (await client.context.collapse(view, ["#1"])).changes


def _acting(
    storage: RunningStorage, context: RunningContext, tenant: Tenant, **end_user: str
) -> AsyncAnnalsClient:
    """A client of both services with the tenant's secret key, perhaps for an end user."""
    return AsyncAnnalsClient(storage.address, context.address, api_key=tenant.api_key, **end_user)
