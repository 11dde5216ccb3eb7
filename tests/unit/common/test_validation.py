from __future__ import annotations

from enum import StrEnum

import pytest
from google.protobuf.struct_pb2 import Struct

from annals_common.errors import FieldInvalidError, LimitExceededError
from annals_common.validation import MAX_NESTING_LEVELS, enum, struct


def test_structs_nest_no_deeper_than_answers_can_hold() -> None:
    value: dict[str, object] = {}
    for _ in range(MAX_NESTING_LEVELS):
        value = {"a": value}
    deep = Struct()
    deep.update(value)

    with pytest.raises(LimitExceededError) as refused:
        struct(deep, "metadata", max_bytes=10_000)

    assert refused.value.metadata["unit"] == "levels"
    assert struct(deep.fields["a"].struct_value, "metadata", max_bytes=10_000)


class Colour(StrEnum):
    RED = "red"
    DARK_GREEN = "dark green"


@pytest.mark.parametrize(("value", "says"), [(0, "is required: one of"), (7, "must be one of")])
def test_unknown_values_of_an_enum_are_told_the_names_there_are(value: int, says: str) -> None:
    with pytest.raises(FieldInvalidError) as refused:
        enum(value, {1: Colour.RED, 2: Colour.DARK_GREEN}, "colour")

    [violation] = refused.value.violations
    assert violation.description.startswith(f"{says} RED (1), DARK_GREEN (2)")
