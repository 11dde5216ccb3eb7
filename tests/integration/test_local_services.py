"""One machine, one command: what users of the local services may rely on."""

import json
import signal
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.local import (
    LocalRun,
    command,
    running_local,
    start_local,
    storage_tool,
    wait_until,
)

from annals_client import user
from annals_local.identity import load_identity
from annals_local.paths import LocalPaths
from annals_local.processes import ProcessId
from annals_local.sample import load_sample
from annals_local.show import QUESTIONS, indexed


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRun]:
    with running_local(tmp_path_factory.mktemp("local")) as run:
        yield run


def store_one(local: LocalRun, text: str) -> None:
    with local.client() as client:
        appended = client.events.append("", user(text), timeout=60)
        (stored,) = client.events.list(appended.conversation_id)
    assert stored.message.content == text


def test_the_endpoints_file_is_its_owners_alone(local: LocalRun) -> None:
    for path in (local.paths.endpoints, local.paths.identity, local.paths.processes):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_endpoints_file_leads_to_services_that_serve(local: LocalRun) -> None:
    with local.client() as client:
        assert client.health.storage() == "serving"
        assert client.health.context() == "serving"
        agent = client.agents.get(local.endpoints()["agent_id"])

    assert agent.system_prompt
    assert set(local.endpoints()) == {
        *("storage", "context", "metrics", "tenant_id", "agent_id", "api_key", "admin_key")
    }


def test_a_second_start_in_the_same_directory_is_refused(local: LocalRun) -> None:
    second = subprocess.run(
        command(local.paths.root), capture_output=True, text=True, check=False, timeout=60
    )

    assert second.returncode == 1
    assert "another annals-local runs in" in second.stderr
    assert "--data-dir" in second.stderr
    store_one(local, "the first is not disturbed")


async def test_the_sample_is_stored_once_and_answers_the_questions_of_the_demo(
    local: LocalRun,
) -> None:
    paths, endpoints = local.paths, local.endpoints()
    identity = load_identity(paths.identity)
    answers = ("importer 4.2", "NK-2430-55", "departures before sailings")
    async with local.async_client() as client:
        stored = await load_sample(client, identity)
        again = await load_sample(client, identity)
        await indexed(client, stored.conversation_id)
        prepared = [
            await client.context.prepare(
                stored.conversation_id,
                budget_tokens=question.budget_tokens,
                current_message=question.text,
                payload_format="text",
                timeout=60,
            )
            for question in QUESTIONS
        ]

    assert endpoints["tenant_id"] == identity.tenant_id
    assert (stored.replayed_events, again.replayed_events) == (0, stored.events)
    assert again.conversation_id == stored.conversation_id
    for answer, context, question in zip(answers, prepared, QUESTIONS, strict=True):
        assert answer in context.payload
        assert context.total_tokens <= question.budget_tokens
        assert not context.degraded


@pytest.mark.parametrize("name", ["storage", "context"])
def test_a_killed_service_comes_back_at_its_address(local: LocalRun, name: str) -> None:
    before = local.endpoints()

    killed = local.signal(name, signal.SIGKILL)

    wait_until(lambda: local.processes()[name] != killed)
    assert local.endpoints() == before
    with local.client() as client:
        wait_until(lambda: getattr(client.health, name)(timeout=60) == "serving")
    assert local.journal("process ended")[-1]["status"] == -signal.SIGKILL
    store_one(local, f"after {name} was killed")


def test_postgresql_comes_back_and_storage_finds_it(local: LocalRun) -> None:
    store_one(local, "before PostgreSQL was killed")
    killed = local.postmaster()

    killed.process().kill()

    ready = local.paths.postgres_ready
    wait_until(lambda: ready.exists() and local.postmaster() != killed)
    with local.client() as client:
        wait_until(lambda: client.health.storage(timeout=60) == "serving")
    store_one(local, "after PostgreSQL was killed")


@dataclass(frozen=True, slots=True)
class Stopped:
    """An installation that served, and was stopped."""

    paths: LocalPaths
    endpoints: dict[str, Any]
    processes: list[ProcessId]
    exit_code: int


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    run = start_local(tmp_path_factory.mktemp("stopped"))
    store_one(run, "words in the mirror")
    with run.client() as client:
        wait_until(lambda: not client.index.status().pending_count)
    endpoints, processes = run.endpoints(), [*run.processes().values(), run.postmaster()]
    return Stopped(run.paths, endpoints, processes, run.stop())


def test_sigterm_ends_every_process_and_the_identity_stays(stopped: Stopped) -> None:
    assert stopped.exit_code == 0
    assert [each for each in stopped.processes if each.process()] == []
    assert not stopped.paths.endpoints.exists()
    with running_local(stopped.paths.root) as again:
        assert again.endpoints()["api_key"] == stopped.endpoints["api_key"]
        assert again.endpoints()["agent_id"] == stopped.endpoints["agent_id"]


def test_the_mirror_of_one_that_is_stopped_is_verified_and_nothing_keeps_running(
    stopped: Stopped,
) -> None:
    whole = storage_tool(stopped.paths.root, "verify")
    shard = stopped.paths.data / "vectors"
    shard.rename(shard.with_name("aside"))
    lost = storage_tool(stopped.paths.root, "verify", "--repair")
    shard.with_name("aside").rename(shard)

    assert whole.returncode == 0, whole.stderr
    assert json.loads(whole.stdout)["chunks"] >= 1
    assert (lost.returncode, lost.stdout) == (1, "")
    assert "there is no vector shard" in lost.stderr
    assert not stopped.paths.postgres_ready.exists()
    assert not (stopped.paths.postgres / "postmaster.pid").exists()


def test_a_rebuild_without_anybody_who_indexes_is_refused(stopped: Stopped) -> None:
    refused = storage_tool(stopped.paths.root, "rebuild")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "a rebuild is done by what serves" in refused.stderr


def test_tools_run_beside_the_services_but_for_those_that_need_the_engine(
    local: LocalRun, tmp_path: Path
) -> None:
    beside = storage_tool(local.paths.root, "parked")
    refused = storage_tool(local.paths.root, "verify", "--repair")
    nowhere = storage_tool(tmp_path, "verify")

    assert (beside.returncode, beside.stdout) == (0, ""), beside.stderr
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "needs the vector engine for itself: stop what serves" in refused.stderr
    assert nowhere.returncode == 1
    assert "is no installation of Annals" in nowhere.stderr
    store_one(local, "the services are not disturbed")


def test_nothing_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    run = start_local(tmp_path)
    processes = [*run.processes().values(), run.postmaster()]

    run.supervisor.kill()
    run.supervisor.wait()

    wait_until(lambda: not any(each.process() for each in processes), timeout_s=30)
