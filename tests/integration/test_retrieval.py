"""Snippets, whole events and other conversations over real gRPC, within an exact budget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from tests.support.context import RunningContext
from tests.support.storage import ADMIN_KEY, RunningStorage, fresh_tenant
from tests.support.waiting import eventually

from annals.context.v1 import resources_pb2 as res
from annals_client import AsyncAnnalsClient, Scope, assistant, user
from annals_client.errors import (
    BudgetTooSmallError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
)
from annals_common.tokenizers import count_tokens, load_encoding

START = datetime(2025, 3, 1, tzinfo=UTC)
QUESTION = "Where is the spare anchor?"
FILLER = "Grey weather again, and nothing of note happened on deck all day long."
LONG = f"{FILLER} " * 12 + "The spare anchor lies in shed nine now. " + f"{FILLER} " * 12


@dataclass(frozen=True, slots=True)
class Fleet:
    """Conversations of two users and a session; two speak of anchors, one of other things."""

    client: AsyncAnnalsClient
    alice: str
    alices_other: str
    bob: str
    session: str
    agent_id: str

    def all(self) -> set[str]:
        return {self.alice, self.alices_other, self.bob, self.session}


@pytest.fixture(scope="module")
async def fleet(storage: RunningStorage, context: RunningContext) -> AsyncIterator[Fleet]:
    async with (
        fresh_tenant(storage) as tenant,
        AsyncAnnalsClient(
            storage.address, context.address, api_key=tenant.api_key, admin_key=ADMIN_KEY
        ) as client,
    ):
        agent = await client.agents.create("boatswain")
        alice = await client.conversations.create(user_id="alice", agent_id=agent.agent_id)
        other = await client.conversations.create(user_id="alice", title="The\nold ferry")
        bob = await client.conversations.create(user_id="bob", agent_id=agent.agent_id)
        session = await client.conversations.create(session_id="s-1")
        ids = [it.conversation_id for it in (alice, other, bob, session)]
        await _tell(client, ids[0], "I look for the spare anchor.", "It is in shed seven.")
        await _tell(client, ids[1], "The ferry's spare anchor was lost.", LONG)
        await _tell(client, ids[2], "Who has the spare anchor?", "Bosun took the spare anchor.")
        await _tell(client, ids[3], "What is for dinner?", "Soup.")
        await eventually(
            client.index.status, lambda status: status.pending_count == 0, timeout_s=60.0
        )
        yield Fleet(client, *ids, agent.agent_id)


async def _tell(client: AsyncAnnalsClient, conversation_id: str, *words: str) -> None:
    notes = [FILLER, FILLER, *words, FILLER, FILLER]
    events = [
        (user, assistant)[i % 2](text, event_time=START + timedelta(days=i))
        for i, text in enumerate(notes)
    ]
    await client.events.append(conversation_id, events)


def tokens(text: str) -> int:
    return count_tokens(load_encoding("o200k_base"), text)


async def check_snippets(fleet: Fleet, snippets: Iterable[res.Snippet], text: str) -> None:
    """Each is where it says, and stands in the text."""
    for snippet in snippets:
        event = await fleet.client.events.get(snippet.event_id)
        body = event.message.content
        assert snippet.text == body[snippet.start_char : snippet.end_char]
        assert (snippet.conversation_id, snippet.seq) == (event.conversation_id, event.seq)
        assert snippet.handle == f"{event.conversation_id}#{event.seq}"
        assert " ".join(snippet.text.split()) in " ".join(text.split())


class TestSnippets:
    @pytest.mark.parametrize("max_tokens", [100, 200, 1_000])
    @pytest.mark.parametrize("strategy", ["relevance", "recency", "mixed"])
    async def test_fit_exactly_and_say_where_they_are_from(
        self, fleet: Fleet, max_tokens: int, strategy: str
    ) -> None:
        found = await fleet.client.context.snippets(
            QUESTION, max_tokens=max_tokens, strategy=strategy
        )

        assert 0 < found.total_tokens == tokens(found.text) <= max_tokens
        assert "anchor" in found.text
        await check_snippets(fleet, found.snippets, found.text)

    async def test_a_long_event_is_shown_where_it_speaks_of_the_query(self, fleet: Fleet) -> None:
        found = await fleet.client.context.snippets(
            "Is the anchor in shed nine?",
            max_tokens=60,
            scope=Scope(conversation_ids=[fleet.alices_other]),
            expand_context=False,
        )

        assert "shed nine" in found.text
        assert "Conversation" not in found.text
        await check_snippets(fleet, found.snippets, found.text)

    async def test_what_stands_beside_comes_along_unless_it_is_not_wanted(
        self, fleet: Fleet
    ) -> None:
        scope = Scope(conversation_ids=[fleet.alice])
        question = "I look for the spare anchor."

        alone = await fleet.client.context.snippets(question, scope=scope, expand_context=False)
        beside = await fleet.client.context.snippets(question, scope=scope)

        found = {snippet.seq for snippet in alone.snippets}
        assert {snippet.seq for snippet in beside.snippets} >= found | {2, 3, 4}
        assert [snippet.seq for snippet in beside.snippets] == sorted(
            snippet.seq for snippet in beside.snippets
        )

    async def test_the_newest_come_first_where_recency_is_asked_for(self, fleet: Fleet) -> None:
        found = await fleet.client.context.snippets(
            "spare anchor",
            max_tokens=40,
            strategy="recency",
            expand_context=False,
            scope=Scope(conversation_ids=[fleet.bob]),
        )

        assert [snippet.seq for snippet in found.snippets][-1] == 4

    @pytest.mark.parametrize(
        ("members", "expected"),
        [
            ({"user_id": "alice"}, {"alice", "alices_other"}),
            ({"user_id": "nobody"}, set()),
            ({"session_id": "s-1"}, {"session"}),
            ({"end_time": START}, set()),
        ],
    )
    async def test_keep_to_their_scope(
        self, fleet: Fleet, members: dict[str, object], expected: set[str]
    ) -> None:
        found = await fleet.client.context.snippets(
            QUESTION, max_tokens=2_000, scope=Scope(**members)
        )

        allowed = {getattr(fleet, name) for name in expected}
        assert {snippet.conversation_id for snippet in found.snippets} <= allowed
        assert bool(found.text) is bool(expected)

    async def test_the_smallest_budget_is_named_and_works(self, fleet: Fleet) -> None:
        with pytest.raises(BudgetTooSmallError) as refused:
            await fleet.client.context.snippets(QUESTION, max_tokens=1)

        minimum = refused.value.minimum_budget_tokens
        assert [it.field for it in refused.value.violations] == ["max_tokens"]
        found = await fleet.client.context.snippets(QUESTION, max_tokens=minimum)
        assert found.total_tokens <= minimum
        with pytest.raises(BudgetTooSmallError):
            await fleet.client.context.snippets(QUESTION, max_tokens=minimum - 1)

    async def test_where_tokens_are_estimated_a_margin_stays_free(self, fleet: Fleet) -> None:
        found = await fleet.client.context.snippets(QUESTION, max_tokens=200, model="claude-x")

        assert not found.counter.exact
        assert found.total_tokens <= 200 - found.counter.margin_tokens < 200


class TestWholeEvents:
    async def test_are_as_many_as_belong_together(self, fleet: Fleet) -> None:
        scope = Scope(conversation_ids=[fleet.session])

        found = await fleet.client.context.retrieve("What is for dinner?", scope=scope)

        # The fillers follow at a distance.
        assert [item.event.message.content for item in found.events] == ["What is for dinner?"]
        assert found.events[0].handle == f"{fleet.session}#3"
        assert found.total_tokens == tokens("What is for dinner?")

    async def test_keep_to_limit_and_budget(self, fleet: Fleet) -> None:
        one = await fleet.client.context.retrieve(QUESTION, auto_limit=1)
        assert len(one.events) == 1

        for max_tokens in (12, 30, 400):
            some = await fleet.client.context.retrieve(QUESTION, max_tokens=max_tokens)
            words = [item.event.message.content for item in some.events]
            assert 0 < some.total_tokens == sum(map(tokens, words)) <= max_tokens
            assert [item.tokens for item in some.events] == [tokens(text) for text in words]
            scores = [item.score for item in some.events]
            assert scores == sorted(scores, reverse=True)

    async def test_the_smallest_budget_is_named_and_works(self, fleet: Fleet) -> None:
        with pytest.raises(BudgetTooSmallError) as refused:
            await fleet.client.context.retrieve(QUESTION, max_tokens=1)

        minimum = refused.value.minimum_budget_tokens
        found = await fleet.client.context.retrieve(QUESTION, max_tokens=minimum)
        assert found.total_tokens == minimum
        assert found.events or found.omitted_handles

    async def test_nothing_found_is_no_failure(self, fleet: Fleet) -> None:
        found = await fleet.client.context.retrieve(QUESTION, scope=Scope(user_id="nobody"))

        assert (list(found.events), found.total_tokens) == ([], 0)


class TestAcross:
    @pytest.mark.parametrize(
        ("scope", "expected"),
        [
            ("user", {"alices_other"}),
            ("agent", {"bob"}),
            ("tenant", {"alices_other", "bob"}),
        ],
    )
    async def test_reaches_the_others_and_leaves_the_one_in_hand_out(
        self, fleet: Fleet, scope: str, expected: set[str]
    ) -> None:
        found = await fleet.client.context.across(
            QUESTION, conversation_id=fleet.alice, scope=scope, max_tokens=1_000
        )

        ids = [group.conversation_id for group in found.conversations]
        allowed = {getattr(fleet, name) for name in expected}
        assert allowed <= set(ids) <= allowed | ({fleet.session} if scope == "tenant" else set())
        assert found.total_tokens == tokens(found.text) <= 1_000
        for group in found.conversations:
            await check_snippets(fleet, group.snippets, found.text)
            assert f"Conversation {group.conversation_id}" in found.text

    async def test_titles_stay_on_their_line(self, fleet: Fleet) -> None:
        found = await fleet.client.context.across(QUESTION, conversation_id=fleet.alice)

        assert f'Conversation {fleet.alices_other} "The old ferry":' in found.text.splitlines()
        assert [group.title for group in found.conversations] == ["The\nold ferry"]

    async def test_takes_so_many_of_so_many(self, fleet: Fleet) -> None:
        found = await fleet.client.context.across(
            QUESTION, scope="tenant", snippets_per_conversation=1, limit=2
        )

        assert [len(group.snippets) for group in found.conversations] == [1, 1]

    async def test_needs_what_is_shared(self, fleet: Fleet) -> None:
        bare = await fleet.client.conversations.create()

        for scope, field in (("user", "scope"), ("agent", "scope")):
            with pytest.raises(InvalidArgumentError) as refused:
                await fleet.client.context.across(
                    QUESTION, conversation_id=bare.conversation_id, scope=scope
                )
            assert [it.field for it in refused.value.violations] == [field]
        with pytest.raises(InvalidArgumentError):
            await fleet.client.context.across(QUESTION, scope="user")


async def test_a_foreign_scope_is_an_empty_one_and_a_foreign_conversation_is_missing(
    fleet: Fleet, annals: AsyncAnnalsClient
) -> None:
    for scope in (Scope(conversation_ids=[fleet.alice]), Scope(agent_id=fleet.agent_id)):
        found = await annals.context.snippets(QUESTION, scope=scope)
        assert (found.text, list(found.snippets)) == ("", [])
        assert not (await annals.context.retrieve(QUESTION, scope=scope)).events
    with pytest.raises(NotFoundError):
        await annals.context.across(QUESTION, conversation_id=fleet.alice, scope="tenant")
    assert not (await annals.context.across(QUESTION, scope="tenant")).text


async def test_a_request_too_large_is_refused(fleet: Fleet) -> None:
    context = fleet.client.context
    everywhere = partial(context.across, scope="tenant")
    for call in (context.snippets, context.retrieve, everywhere):
        with pytest.raises(InvalidArgumentError):
            await call("")
        with pytest.raises(LimitExceededError):
            await call("x" * 32_769)
        with pytest.raises(InvalidArgumentError):
            await call("x", max_tokens=-1)
