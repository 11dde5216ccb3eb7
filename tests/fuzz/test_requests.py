"""Valid messages with senseless values to every unary method: never INTERNAL, always a reason.

`ANNALS_FUZZ_EXAMPLES` sets the number of messages for each method.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, seed
from tests.fuzz.conftest import Fuzzed
from tests.fuzz.generated import PROFILE, SEED, check, messages
from tests.support.raw import unary_methods


@pytest.mark.parametrize("name", unary_methods())
def test_no_message_breaks_a_method(fuzzed: Fuzzed, name: str) -> None:
    loop, tenant = fuzzed

    @seed(SEED)
    @PROFILE
    @given(messages(unary_methods()[name].input_type))
    def run(request: Any) -> None:
        loop.run_until_complete(check(name, request, tenant.raw.call(name, request, timeout_s=10)))

    run()
