"""The snippets of docs/history.md run as they stand."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.storage import RunningStorage, Tenant

from annals_client import AnnalsClient

GUIDE = Path(__file__).parents[2] / "docs/history.md"


async def test_every_snippet_runs(
    storage: RunningStorage, tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snippets = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    endpoints = tmp_path / "endpoints.json"
    endpoints.write_text(json.dumps({"storage": storage.address, "api_key": tenant.api_key}))
    monkeypatch.setenv("ANNALS_ENDPOINTS", str(endpoints))
    monkeypatch.chdir(tmp_path)

    def run() -> dict[str, Any]:
        known: dict[str, Any] = {}
        for snippet in snippets:
            exec(compile(snippet, str(GUIDE), "exec"), known)
        return known

    known = await asyncio.to_thread(run)

    client: AnnalsClient = known["client"]
    client.close()
    assert known["merged"].moved_count == 1
    assert known["again"].skipped_conversation_count == 1
    assert [hit.memory.content for hit in known["found"].hits] == ["Prefers delivery on Saturdays."]
    assert known["receipt"].HasField("complete_time")
