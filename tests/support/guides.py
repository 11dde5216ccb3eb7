"""Pages of the documentation whose snippets run as they stand."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


async def run_guide(
    name: str, endpoints: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Run the Python snippets of a page one after the other; return what they know at the end."""
    guide = DOCS / name
    snippets = re.findall(r"^```python\n(.*?)^```$", guide.read_text(), re.DOTALL | re.MULTILINE)
    path = tmp_path / "endpoints.json"
    path.write_text(json.dumps(endpoints))
    monkeypatch.setenv("ANNALS_ENDPOINTS", str(path))
    monkeypatch.chdir(tmp_path)

    def run() -> dict[str, Any]:
        known: dict[str, Any] = {}
        for snippet in snippets:
            exec(compile(snippet, str(guide), "exec"), known)
        return known

    return await asyncio.to_thread(run)
