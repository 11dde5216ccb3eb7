"""Keys of cached contexts, what two contexts begin with, and the memory of a process."""

from __future__ import annotations

from dataclasses import dataclass, fields, make_dataclass, replace
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from annals_context.clients.context_bodies import Bodies
from annals_context.commands.bounded import Bounded
from annals_context.commands.cache_options import asked
from annals_context.commands.preparing import Prepare, Prepared
from annals_context.domain.model import DetailLevel, PayloadFormat, StrategyName
from annals_context.domain.reuse import OF_ONE_TURN, request_digest, shared_prefix
from annals_context.ports import Caller

PREPARE = Prepare(
    conversation_id="c",
    budget_tokens=1_000,
    response_reserve_tokens=0,
    query="q",
    current_message="m",
    model="gpt-4o",
    payload_format=PayloadFormat.TEXT,
    strategy=StrategyName.ADAPTIVE,
    recent_events=10,
    relevant_events=50,
    snippet_chars=100,
    include_tool_calls=True,
    read_your_writes=False,
)
CALLER = Caller("Bearer a", "r")


def another(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case Enum():
            return next(each for each in type(value) if each is not value)
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case tuple():
            return (*value, "x")
        case frozenset():
            return value | {1}
        case dict():
            return {**value, 1: DetailLevel.FULL}
    return "x"


@pytest.mark.parametrize("name", [field.name for field in fields(Prepare)])
def test_every_field_of_a_request_counts(name: str) -> None:
    changed = replace(PREPARE, **{name: another(getattr(PREPARE, name))})

    assert request_digest(changed, "v") != request_digest(PREPARE, "v")
    assert (
        request_digest(changed, "v", without=OF_ONE_TURN)
        == request_digest(PREPARE, "v", without=OF_ONE_TURN)
    ) == (name in OF_ONE_TURN)


def test_a_field_that_is_added_later_counts_by_itself() -> None:
    later = make_dataclass("Prepare", [("new", int, 0)], bases=(Prepare,), frozen=True)
    values = {field.name: getattr(PREPARE, field.name) for field in fields(Prepare)}

    one, other = later(**values, new=1), later(**values, new=2)

    assert request_digest(one, "v") != request_digest(other, "v")


def test_other_code_has_other_keys() -> None:
    assert request_digest(PREPARE, "v") != request_digest(PREPARE, "w")


def test_other_credentials_and_other_end_users_have_keys_of_their_own() -> None:
    callers = [
        CALLER,
        Caller("Bearer b", "r"),
        replace(CALLER, end_user=(("annals-user-id", "u"),)),
        replace(CALLER, end_user=(("annals-user-id", "v"),)),
    ]

    keys = {asked(caller, PREPARE, "", "v").key for caller in callers}

    assert len(keys) == len(callers)
    # What tells calls apart, and not callers, does not count.
    later = replace(CALLER, request_id="other", timeout_s=3.0)
    assert asked(later, PREPARE, "", "v").key in keys


def test_a_field_without_one_form_is_refused() -> None:
    odd = make_dataclass("Odd", [("values", set)])

    with pytest.raises(TypeError):
        request_digest(odd({1, 2}), "v")


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_a_shared_prefix_is_the_longest(start: str, one: str, other: str) -> None:
    prefix = shared_prefix(start + one, start + other)

    assert prefix.startswith(start)
    assert (start + one).startswith(prefix)
    assert (start + other).startswith(prefix)
    rest = (start + one)[len(prefix) :], (start + other)[len(prefix) :]
    assert not rest[0] or not rest[1] or rest[0][0] != rest[1][0]


class TestBounded:
    def test_what_was_not_used_for_longest_goes_first(self) -> None:
        bounded: Bounded[str, int] = Bounded("test", max_bytes=100, ttl_seconds=60)
        for number, key in enumerate("abcd"):
            bounded.put(key, number, 25)
        assert bounded.get("a") == 0

        bounded.put("e", 4, 25)

        assert [bounded.get(key) for key in "abcde"] == [0, None, 2, 3, 4]
        assert bounded.size_bytes == 100 == sample("annals_context_cache_bytes", kind="test")

    def test_what_is_too_old_is_not_returned(self) -> None:
        clock = [0.0]
        bounded: Bounded[str, int] = Bounded(
            "test", max_bytes=100, ttl_seconds=60, now=lambda: clock[0]
        )
        bounded.put("a", 1, 10)
        clock[0] = 59.9
        assert bounded.get("a") == 1
        clock[0] = 60.0

        assert bounded.get("a") is None
        assert bounded.size_bytes == 0

    def test_a_single_value_drives_out_no_others(self) -> None:
        bounded: Bounded[str, int] = Bounded("test", max_bytes=100, ttl_seconds=60)
        bounded.put("a", 1, 25)
        bounded.put("b", 2, 26)
        bounded.put("a", 3, 26)

        # Not even its own former value, which would be stale.
        assert (bounded.get("a"), bounded.get("b")) == (None, None)


def sample(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def filled(kind: Any) -> Any:
    """A value of a type, all of it different from its defaults."""
    origin, arguments = get_origin(kind), get_args(kind)
    if hasattr(kind, "__dataclass_fields__"):
        hints = get_type_hints(kind)
        return kind(**{field.name: filled(hints[field.name]) for field in fields(kind)})
    if origin is tuple:
        several = arguments[:1] * 2 if arguments[-1] is Ellipsis else arguments
        return tuple(filled(each) for each in several)
    if origin is UnionType:
        return filled(next(each for each in arguments if each is not NoneType))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return list(kind)[-1]
    return {int: 7, float: 0.1 + 0.2, str: "ä\u2028\ufffd💣", bool: True}[kind]


class TestBodies:
    def test_everything_of_a_context_survives(self) -> None:
        prepared, bodies = filled(Prepared), Bodies(Prepared)

        assert bodies.unpack(bodies.pack(prepared)) == prepared

    @pytest.mark.parametrize("body", [b"", b"x", Bodies(int).pack(7)])
    def test_what_is_no_context_is_none(self, body: bytes) -> None:
        assert Bodies(Prepared).unpack(body) is None

    def test_no_body_unpacks_to_more_than_is_allowed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @dataclass
        class Long:
            text: str

        bodies = Bodies(Long)
        body = bodies.pack(Long("x" * 1_000))
        assert bodies.unpack(body) == Long("x" * 1_000)
        monkeypatch.setattr("annals_context.clients.context_bodies.MAX_PLAIN_BYTES", 999)

        assert bodies.unpack(body) is None
