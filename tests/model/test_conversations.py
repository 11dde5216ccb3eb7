"""Conversations agree with a model of them after every step, whatever is done to them.

`make model STEPS=10000` takes more of them; SEED=… begins elsewhere, and SHRINK=1 has hypothesis
look for the shortest way to a difference.
"""

from __future__ import annotations

import asyncio
import os
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.model.machine import Machine, Steps
from tests.model.rules_branches import BranchRules, TurnRules
from tests.model.rules_conversations import (
    ConversationErasureRules,
    ConversationRules,
    MemoryRules,
)
from tests.model.rules_events import ErasureRules, EventRules
from tests.support.indexing import indexed
from tests.support.storage import RunningStorage, Tenant

from annals_storage.app_adapters import mirror_parts
from annals_storage.commands.verifying import VerifyMirror

STEPS = int(os.environ.get("STEPS", "400"))
STEPS_PER_EXAMPLE = 50
EXAMPLES = 5
SEED = int(os.environ.get("SEED", "1"))
PHASES = [Phase.generate, *([Phase.shrink] if "SHRINK" in os.environ else [])]
TIMEOUT_S = 6 * 3_600 if "STEPS" in os.environ else 180


class Conversations(
    EventRules,
    TurnRules,
    BranchRules,
    ErasureRules,
    ConversationRules,
    MemoryRules,
    ConversationErasureRules,
):
    """Everything that can be done to conversations."""


@pytest.mark.timeout(TIMEOUT_S)
def test_the_service_agrees_with_the_model(
    modelled: tuple[asyncio.AbstractEventLoop, Tenant], storage: RunningStorage
) -> None:
    Machine.loop, Machine.tenant = modelled
    start, number = Steps.taken, SEED
    while Steps.taken - start < STEPS:
        _run(number)
        number += 1
    Machine.loop.run_until_complete(_mirror_is_exact(storage, Machine.tenant))


async def _mirror_is_exact(storage: RunningStorage, tenant: Tenant) -> None:
    """Whatever was done, every point is what the rows say by now."""
    await indexed(tenant)
    report = await VerifyMirror(mirror_parts(storage.adapters))(UUID(tenant.tenant_id))
    assert report.is_clean, report.as_dict()
    assert report.chunks > 0


def _run(number: int) -> None:
    """Take some examples; their steps follow from the number."""
    Steps.say(f"seed {number}")
    run_state_machine_as_test(
        seed(number)(Conversations),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS_PER_EXAMPLE,
            deadline=None,
            database=None,
            phases=PHASES,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        ),
    )
