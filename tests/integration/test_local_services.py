"""One machine, one command: what users of the local services may rely on."""

import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.local import LocalRun, command, running_local, start_local, wait_until

from annals_client import user
from annals_local.identity import load_identity
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


def test_sigterm_ends_every_process_and_the_identity_stays(tmp_path: Path) -> None:
    run = start_local(tmp_path)
    endpoints, processes = run.endpoints(), [*run.processes().values(), run.postmaster()]

    assert run.stop() == 0

    assert [each for each in processes if each.process()] == []
    assert not run.paths.endpoints.exists()
    with running_local(tmp_path) as again:
        assert again.endpoints()["api_key"] == endpoints["api_key"]
        assert again.endpoints()["agent_id"] == endpoints["agent_id"]


def test_nothing_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    run = start_local(tmp_path)
    processes = [*run.processes().values(), run.postmaster()]

    run.supervisor.kill()
    run.supervisor.wait()

    wait_until(lambda: not any(each.process() for each in processes), timeout_s=30)
