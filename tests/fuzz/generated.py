"""Messages with senseless values, made from their descriptors."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from tests.support.raw import Failure, outcome

EXAMPLES = int(os.environ.get("ANNALS_FUZZ_EXAMPLES", "15"))
SEED = int(os.environ.get("ANNALS_FUZZ_SEED", "1"))
PROFILE = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
DEFECTS = frozenset({"INTERNAL", "UNKNOWN", "UNAVAILABLE", "DATA_LOSS"})
KNOWN_IDS = tuple(f"01999999-9999-7999-8999-99999999999{digit}" for digit in range(4))

F = FieldDescriptor
INT64 = st.one_of(
    st.sampled_from([0, 1, -1, 2**31, 2**62, 2**63 - 1, -(2**63)]), st.integers(-5, 2000)
)
INT32 = st.one_of(st.sampled_from([0, 1, -1, 1000, 1001, 2**31 - 1, -(2**31)]), st.integers(0, 9))
TEXT = st.one_of(
    st.sampled_from(["", "a", "\x00", *KNOWN_IDS, KNOWN_IDS[0].upper(), "{}", '{"a": [1e999]}']),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=40),
    st.sampled_from(["x" * 257, "日" * 501, "\u202e" * 10, "🏳️‍🌈" * 50, "\\u0000", "%s %(a)s"]),
)
DOUBLE = st.floats(width=64)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), DOUBLE, TEXT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    F.TYPE_STRING: TEXT,
    F.TYPE_BYTES: st.binary(max_size=20),
    F.TYPE_BOOL: st.booleans(),
    F.TYPE_DOUBLE: DOUBLE,
    F.TYPE_FLOAT: st.floats(width=32),
    F.TYPE_INT32: INT32,
    F.TYPE_INT64: INT64,
    F.TYPE_ENUM: st.one_of(st.integers(0, 5), st.sampled_from([-1, 99, 2**31 - 1])),
}


def structs() -> st.SearchStrategy[Struct]:
    def build(values: dict[str, Any]) -> Struct:
        struct = Struct()
        struct.update(values)
        return struct

    return st.dictionaries(TEXT, JSON, max_size=4).map(build)


def messages(descriptor: Descriptor) -> st.SearchStrategy[Any]:
    """Messages of this kind with any of their fields set to anything."""
    if descriptor.full_name == "google.protobuf.Struct":
        return structs()
    kind = GetMessageClass(descriptor)
    optional = {field.name: values(field) for field in descriptor.fields}
    return st.fixed_dictionaries({}, optional=optional).map(lambda given: build(kind, given))


def build(kind: type[Any], given: dict[str, Any]) -> Any:
    message = kind()
    for name, value in given.items():
        if isinstance(value, list):
            getattr(message, name).extend(value)
        elif hasattr(value, "CopyFrom"):
            getattr(message, name).CopyFrom(value)
        else:
            setattr(message, name, value)
    return message


def values(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    kind = field.message_type
    one = messages(kind) if kind is not None else SCALARS[field.type]
    return st.lists(one, max_size=3) if field.is_repeated else one


async def check(name: str, request: Any, call: Awaitable[object]) -> None:
    """Fail unless the call is answered, or refused with a reason and no fault of the service."""
    failure = await outcome(call)
    if not isinstance(failure, Failure):
        return
    assert failure.code.name not in DEFECTS, f"{name}({request}) → {failure}"
    assert failure.domain == "annals", f"{name}({request}) → {failure}"
    assert failure.reason, f"{name}({request}) → {failure}"
