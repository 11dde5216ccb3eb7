"""The snippets of the guides run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.context import RunningContext
from tests.support.guides import run_guide
from tests.support.storage import RunningStorage, Tenant

from annals_client import AnnalsClient


async def test_every_snippet_of_the_history_runs(
    storage: RunningStorage, tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoints = {"storage": storage.address, "api_key": tenant.api_key}

    known = await run_guide("history.md", endpoints, tmp_path, monkeypatch)

    client: AnnalsClient = known["client"]
    client.close()
    assert known["merged"].moved_count == 1
    assert known["again"].skipped_conversation_count == 1
    assert [hit.memory.content for hit in known["found"].hits] == ["Prefers delivery on Saturdays."]
    assert known["receipt"].HasField("complete_time")


async def test_every_snippet_of_the_drill_down_runs(
    storage: RunningStorage,
    context: RunningContext,
    tenant: Tenant,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoints = {
        "storage": storage.address,
        "context": context.address,
        "api_key": tenant.api_key,
    }

    known = await run_guide("drill-down.md", endpoints, tmp_path, monkeypatch)

    client: AnnalsClient = known["client"]
    client.close()
    assert known["needed_tokens"] > 300
    assert "shed nine" in known["found"].text
