"""What the Dockerfiles promise, read from them; `make image-test` runs their stages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "deploy/docker"
LOCKED = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", re.MULTILINE)
SERVICES = ("storage", "context")


def instructions(service: str) -> list[tuple[str, str]]:
    lines = (DOCKER / f"{service}.Dockerfile").read_text().splitlines()
    return [
        (keyword, rest)
        for keyword, _, rest in (line.partition(" ") for line in lines)
        if keyword and not keyword.startswith("#")
    ]


@pytest.mark.parametrize("service", SERVICES)
def test_the_final_stage_only_copies_and_runs_as_nobody_special(service: str) -> None:
    found = instructions(service)
    last = max(n for n, (keyword, _) in enumerate(found) if keyword == "FROM")
    final = found[last:]

    assert [rest for keyword, rest in final if keyword == "RUN"] == ["/tmp/finish.sh"]
    assert [rest for keyword, rest in final if keyword == "USER"] == ["10001:10001"]
    assert [rest for keyword, rest in final if keyword == "ENTRYPOINT"] == [f'["annals-{service}"]']
    assert "HEALTHCHECK" not in {keyword for keyword, _ in found}


@pytest.mark.parametrize("service", SERVICES)
def test_the_base_is_pinned_and_stages_run_scripts(service: str) -> None:
    found = instructions(service)
    [base] = [rest.partition("=")[2] for keyword, rest in found if keyword == "ARG"]
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base)
    assert {rest.split()[0] for keyword, rest in found if keyword == "FROM"} == {"${PYTHON_IMAGE}"}
    for rest in (rest for keyword, rest in found if keyword == "RUN"):
        assert (DOCKER / Path(rest.split()[0]).name).stat().st_mode & 0o100


@pytest.mark.parametrize("name", [*SERVICES, "build"])
def test_locks_hold_what_was_tested_and_all_that_is_needed(name: str) -> None:
    own = set(LOCKED.findall((DOCKER / f"requirements-{name}.lock").read_text()))
    everything = set(LOCKED.findall((ROOT / "requirements.lock").read_text()))
    printed = subprocess.run(
        [sys.executable, DOCKER / "requirements.py", name],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    needed = {
        re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~ ]", line)[0]).lower()
        for line in printed.splitlines()
    }
    assert own <= everything, "make lock-images"
    assert needed <= {re.sub(r"[-_.]+", "-", key).lower() for key, _ in own}, "make lock-images"
