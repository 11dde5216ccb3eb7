"""The mirror is made anew, by the same model or another, while clients search and write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.appending import append
from tests.support.generations import FACTS, Life, command
from tests.support.indexing import EmbeddingWork, indexed
from tests.support.memories import DIMENSIONS
from tests.support.scratch import as_tenant
from tests.support.second_model import SECOND_DIMENSIONS, SECOND_MODEL, write_second_model
from tests.support.storage import (
    RunningStorage,
    Tenant,
    fresh_tenant,
    running_storage,
    storage_settings,
)
from tests.support.waiting import eventually

from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.app_adapters import mirror_parts
from annals_storage.commands.verifying import VerifyMirror
from annals_storage.domain.generations import EmbeddingModel
from annals_storage.embedding.minilm import MODEL_NAME, ensure_minilm
from annals_storage.postgres.generations import PostgresGenerations

BUILD_TIMEOUT_S = 120.0
_MODELS = """
SELECT embedding_model AS model FROM annals.chunks
UNION SELECT embedding_model FROM annals.memories
UNION SELECT other_embedding_model FROM annals.memories WHERE other_embedding IS NOT NULL
"""
_HOLD = """
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, available_at)
VALUES (%s, 'event', '00000000-0000-0000-0000-000000000001',
        '00000000-0000-0000-0000-000000000002', now() + interval '1 hour') RETURNING 1
"""
_OF_HELD = "WHERE key = '00000000-0000-0000-0000-000000000001' RETURNING 1"
_PARK = f"UPDATE annals.outbox SET parked_at = now() {_OF_HELD}"
_LET_GO = f"DELETE FROM annals.outbox {_OF_HELD}"


@pytest.fixture(scope="module")
async def renewed(
    own_postgres: LocalPostgres, storage: RunningStorage, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningStorage]:
    """A service that keeps what was replaced for a second only."""
    path = tmp_path_factory.mktemp("renewed")
    (path / "models").symlink_to(storage.data_dir / "models")
    settings = storage_settings(own_postgres, path, mirror_grace_seconds=1.0)
    async with running_storage(settings) as it:
        yield it


@pytest.fixture
async def life(renewed: RunningStorage) -> AsyncIterator[Life]:
    async with fresh_tenant(renewed) as tenant:
        living = Life(tenant)
        await living.begin()
        await indexed(tenant)
        yield living


@pytest.fixture(scope="module")
def second_model(renewed: RunningStorage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    first = ensure_minilm(renewed.data_dir)
    return write_second_model(first, tmp_path_factory.mktemp("models") / "second")


async def replaced(storage: RunningStorage, tenant: Tenant, number: int) -> None:
    """Wait until this generation serves and is the only one."""
    store = PostgresGenerations(storage.adapters.database)
    await eventually(
        store.all,
        lambda rows: [(row.number, row.state.value) for row in rows] == [(number, "serving")],
        timeout_s=BUILD_TIMEOUT_S,
    )
    await eventually(tenant.client.index.status, lambda s: s.serving_generation == number)
    await indexed(tenant)


async def assert_nothing_came_back(storage: RunningStorage, life: Life) -> None:
    """What is gone is nowhere in the mirror, which is as it should be."""
    await indexed(life.tenant)
    report = await VerifyMirror(mirror_parts(storage.adapters))()
    assert report.is_clean, report
    for text in life.gone:
        found = await life.tenant.client.search.events(text, mode="lexical", limit=3)
        assert text not in {hit.event.message.content for hit in found.hits}
    async for receipt in life.tenant.client.erasure.receipts():
        verified = await life.tenant.client.erasure.verify(receipt.receipt_id)
        assert verified.verified, receipt


def folders(storage: RunningStorage) -> list[str]:
    return sorted(path.name for path in storage.data_dir.glob("vectors*"))


async def rebuild(
    postgres: LocalPostgres, storage: RunningStorage, *arguments: str
) -> tuple[int, str]:
    return await command(postgres, storage.data_dir, "rebuild", *arguments)


async def test_a_rebuild_embeds_nothing(
    renewed: RunningStorage, life: Life, own_postgres: LocalPostgres
) -> None:
    before = (await life.tenant.client.index.status()).serving_generation
    with EmbeddingWork() as work:
        code, said = await rebuild(own_postgres, renewed)
        number = before + 1
        await replaced(renewed, life.tenant, number)

    status = await life.tenant.client.index.status()
    assert (code, work.embedded) == (0, 0), said
    assert f"generation {number} serves" in said
    assert status.point_count == status.chunk_count > FACTS
    assert folders(renewed) == [f"vectors-{number}"]
    await assert_nothing_came_back(renewed, life)


async def test_a_client_searches_and_writes_through_a_rebuild(
    renewed: RunningStorage, life: Life, own_postgres: LocalPostgres
) -> None:
    number = (await life.tenant.client.index.status()).serving_generation + 1
    async with life.living():
        code, said = await rebuild(own_postgres, renewed)
        await replaced_meanwhile(life, number)

    await replaced(renewed, life.tenant, number)
    assert code == 0, said
    assert life.searches > 20
    assert life.gone
    await assert_nothing_came_back(renewed, life)


async def replaced_meanwhile(life: Life, number: int) -> None:
    await eventually(
        life.tenant.client.index.status,
        lambda status: status.serving_generation == number,
        timeout_s=BUILD_TIMEOUT_S,
    )
    searches = life.searches

    async def searched() -> int:
        return life.searches

    await eventually(searched, lambda now: now > searches + 20, timeout_s=BUILD_TIMEOUT_S)


async def test_a_client_searches_and_writes_through_a_change_of_the_model(
    renewed: RunningStorage, life: Life, own_postgres: LocalPostgres, second_model: Path
) -> None:
    tenant = life.tenant
    number = (await tenant.client.index.status()).serving_generation + 1
    async with life.living():
        code, said = await rebuild(
            own_postgres, renewed, "--model", SECOND_MODEL, "--model-dir", str(second_model)
        )
        await replaced_meanwhile(life, number)

    await replaced(renewed, tenant, number)
    status = await tenant.client.index.status()
    assert code == 0, said
    assert (status.embedding_model, status.embedding_dimensions) == (
        SECOND_MODEL,
        SECOND_DIMENSIONS,
    )
    models = as_tenant(own_postgres.app_url, tenant.tenant_id, _MODELS)
    assert {row["model"] for row in models} == {SECOND_MODEL}
    assert status.point_count == status.chunk_count > FACTS
    await assert_nothing_came_back(renewed, life)

    back = EmbeddingModel(MODEL_NAME, None, DIMENSIONS)
    await PostgresGenerations(renewed.adapters.database).request(back)
    await replaced(renewed, tenant, number + 1)
    assert (await tenant.client.index.status()).embedding_model == MODEL_NAME
    await assert_nothing_came_back(renewed, life)


@pytest.fixture
async def quiet(renewed: RunningStorage) -> AsyncIterator[Tenant]:
    """A tenant of the service with one event."""
    async with fresh_tenant(renewed) as tenant:
        await append(tenant.raw, "", user("one"))
        await indexed(tenant)
        yield tenant


@pytest.fixture
async def held(own_postgres: LocalPostgres, quiet: Tenant) -> AsyncIterator[None]:
    """A change that nobody mirrors while the test runs: no build comes to its end."""
    tenant_id = quiet.tenant_id
    as_tenant(own_postgres.app_url, tenant_id, _HOLD, [tenant_id])
    yield
    as_tenant(own_postgres.app_url, tenant_id, _LET_GO, [])


async def test_one_is_built_at_a_time_and_may_be_given_up(
    renewed: RunningStorage, quiet: Tenant, own_postgres: LocalPostgres, held: None
) -> None:
    status = quiet.client.index.status
    serving = (await status()).serving_generation
    [model] = [row.model for row in await PostgresGenerations(renewed.adapters.database).all()]
    await PostgresGenerations(renewed.adapters.database).request(model)
    building = await eventually(status, lambda now: now.build_progress == 1.0)

    refused = await rebuild(own_postgres, renewed)
    given_up = await rebuild(own_postgres, renewed, "--cancel")
    await replaced_by_nothing(renewed, serving)

    number = building.building_generation
    assert number > serving == building.serving_generation
    assert refused[0] == 1
    assert f"generation {number} is building" in refused[1]
    assert given_up == (0, f"generation {number} is given up\n")
    assert folders(renewed) == [f"vectors-{serving}" if serving > 1 else "vectors"]
    assert (await status()).building_generation == 0


async def test_a_model_that_cannot_be_loaded_is_refused_in_one_line(
    renewed: RunningStorage, quiet: Tenant, own_postgres: LocalPostgres
) -> None:
    code, said = await rebuild(own_postgres, renewed, "--model", "no/such-model")

    assert (code, said.count("\n")) == (1, 1), said
    assert said.startswith("the model 'no/such-model' cannot be loaded: ")
    assert (await quiet.client.index.status()).building_generation == 0


async def replaced_by_nothing(storage: RunningStorage, serving: int) -> None:
    store = PostgresGenerations(storage.adapters.database)
    await eventually(store.all, lambda rows: [row.number for row in rows] == [serving])
    await storage.adapters.generations.refresh()


async def test_what_fails_since_it_was_begun_keeps_it_from_serving(
    renewed: RunningStorage, quiet: Tenant, own_postgres: LocalPostgres, held: None
) -> None:
    store = PostgresGenerations(renewed.adapters.database)
    [serving] = await store.all()
    building = await store.request(serving.model)
    assert building is not None
    await eventually(store.all, lambda rows: rows[-1].sources_total is not None)

    as_tenant(own_postgres.app_url, quiet.tenant_id, _PARK, [])
    stuck = await eventually(store.all, lambda rows: rows[-1].problem)
    as_tenant(own_postgres.app_url, quiet.tenant_id, _LET_GO, [])
    await replaced(renewed, quiet, building.number)

    assert stuck[-1].problem == "1 changes were parked since it was begun"
