from __future__ import annotations

import pytest
from google.protobuf.struct_pb2 import Struct

from annals_common.errors import LimitExceededError
from annals_common.validation import MAX_NESTING_LEVELS, struct


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
