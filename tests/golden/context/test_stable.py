"""The same request gives the same bytes in every process, and what comes later changes the end."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import pytest
from tests.golden.context.conversations import long_talk
from tests.unit.context.counters import O200K

from annals_context.domain.assembly import assemble
from annals_context.domain.model import ContextRequest, PayloadFormat
from annals_context.domain.reuse import shared_prefix

_EVERY_CONTEXT = """
from itertools import product
from tests.golden.context import test_context_golden as golden
for name, strategy, form, budget in product(
    golden.CONVERSATIONS, ("full", "snippet"), golden.SUFFIXES, golden.BUDGETS_TOKENS
):
    golden.test_context(name, golden.StrategyName(strategy), form, budget)
"""


def test_bytes_do_not_depend_on_how_a_process_hashes() -> None:
    """The golden files hold in this process; its seed is another one, almost always."""
    done = subprocess.run(
        [sys.executable, "-c", _EVERY_CONTEXT],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("payload_format", PayloadFormat)
def test_a_turn_that_is_appended_leaves_what_was_there_before(
    payload_format: PayloadFormat,
) -> None:
    events = long_talk()
    payloads = [
        assemble(
            ContextRequest(
                counter=O200K,
                budget_tokens=20_000,
                total_events=count,
                recent=events[:count],
                system_prompt="You are a helpful assistant.",
                payload_format=payload_format,
            )
        ).payload
        for count in range(10, 30, 2)
    ]

    for before, after in pairwise(payloads):
        # All but how the former one ends.
        assert len(before) - len(shared_prefix(before, after)) <= len("\n]")
