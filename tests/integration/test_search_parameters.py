"""How a tenant's searches rank is the tenant's to say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import grpc
import pytest
from tests.support.appending import append
from tests.support.cli import Run
from tests.support.raw import Raw, failure
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.waiting import eventually

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_client import user
from annals_storage.commands.search_parameters import TenantParameters
from annals_storage.domain.search_parameters import BOUNDS, DEFAULTS, Overrides

MAY = datetime(2024, 5, 6, 12, tzinfo=UTC)


def request(*paths: str, **values: float) -> pb.UpdateSearchParametersRequest:
    made = pb.UpdateSearchParametersRequest(parameters=res.SearchParameters(**values))  # type: ignore[arg-type]
    made.update_mask.paths.extend(paths or values)
    return made


async def update(raw: Raw, *paths: str, **values: float) -> pb.UpdateSearchParametersResponse:
    made: pb.UpdateSearchParametersResponse = await raw.call(
        "UpdateSearchParameters", request(*paths, **values)
    )
    return made


async def test_are_the_defaults_until_changed_and_again_after(tenant: Tenant) -> None:
    parameters = tenant.client.search_parameters
    first = await parameters.get()
    assert not first.overridden
    assert {name: getattr(first.parameters, name) for name in BOUNDS} == {
        name: getattr(DEFAULTS, name) for name in BOUNDS
    }

    changed = await parameters.update({"time_bonus": 0.1, "neighbor_distance": 1})
    assert list(changed.overridden) == ["neighbor_distance", "time_bonus"]
    assert await parameters.get() == pb.GetSearchParametersResponse(
        parameters=changed.parameters, overridden=changed.overridden
    )

    kept = await parameters.update({"time_bonus": None})
    assert list(kept.overridden) == ["neighbor_distance"]
    assert kept.parameters.time_bonus == DEFAULTS.time_bonus
    assert not (await update(tenant.raw, "*")).overridden


async def test_change_the_tenants_searches_at_once_and_nobody_elses(
    storage: RunningStorage, tenant: Tenant
) -> None:
    async def explained(whose: Tenant) -> set[str]:
        found = await whose.client.search.events("Who swam in May 2024?", explain=True)
        assert found.hits
        return {part.signal for hit in found.hits for part in hit.components}

    async with fresh_tenant(storage) as other:
        for each in (tenant, other):
            await append(each.raw, "", user("Ann swam in the lake.", event_time=MAY))
            await eventually(each.client.index.status, lambda status: status.pending_count == 0)
            assert await explained(each) >= {"time", "neighbors", "maxsim"}

        await update(tenant.raw, time_bonus=0.0, neighbor_share=0.0)

        assert await explained(tenant) == {"dense", "bm25", "maxsim"}
        assert "time" in await explained(other)


async def test_are_remembered_between_searches() -> None:
    asked = []

    class Store:
        async def get(self, tenant_id: Any) -> Overrides:
            asked.append(tenant_id)
            return {"time_bonus": 0.1, "unknown": 1, "dense_weight": 7}

        async def change(self, _tenant_id: Any, values: Overrides) -> Overrides:
            return values

    parameters, tenant_id = TenantParameters(Store()), uuid4()

    found = [await parameters(tenant_id) for _ in range(3)]

    assert len(asked) == 1
    assert found[0].time_bonus == 0.1
    assert found[0].dense_weight == DEFAULTS.dense_weight, "what is not allowed any more"
    await parameters.update(tenant_id, {"time_bonus": 0.2})
    await parameters(tenant_id)
    assert len(asked) == 3, "once to check the change, once because it was forgotten"


@pytest.mark.parametrize(
    ("made", "field", "says"),
    [
        (request(time_bonus=1.5), "parameters.time_bonus", "between 0 and 1"),
        (request(maxsim_weight=float("nan")), "parameters.maxsim_weight", "between 0 and 1"),
        (request(compared_events=301), "parameters.compared_events", "between 10 and 300"),
        (request(neighbor_distance=-1), "parameters.neighbor_distance", "between 0 and 10"),
        (request("*", min_candidates=9), "parameters.min_candidates", "between 10 and 2,000"),
        (
            request(first_dense_weight=0.0, first_bm25_weight=0.0),
            "parameters.first_bm25_weight",
            "must not all be 0",
        ),
        (request("bonus"), "update_mask", "may name candidates_per_hit"),
        (request("*", "time_bonus"), "update_mask", "or * alone"),
        (
            request("time_bonus", speaker_bonus=0.1),
            "parameters.speaker_bonus",
            "update_mask does not name it",
        ),
        (pb.UpdateSearchParametersRequest(), "update_mask", "is required"),
    ],
)
async def test_wrong_values_are_refused(
    tenant: Tenant, made: pb.UpdateSearchParametersRequest, field: str, says: str
) -> None:
    refused = await failure(tenant.raw.call("UpdateSearchParameters", made))

    assert (refused.code, refused.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID")
    assert refused.fields == (field,)
    assert says in refused.message
    assert not (await tenant.client.search_parameters.get()).overridden


async def test_weights_are_checked_with_those_that_stand(tenant: Tenant) -> None:
    await update(tenant.raw, dense_weight=0.0, bm25_weight=0.0)

    refused = await failure(update(tenant.raw, maxsim_weight=0.0))

    assert refused.fields == ("parameters.maxsim_weight",)


async def test_of_a_tenant_that_is_not_there(admin: Raw) -> None:
    for name, kind in (
        ("GetSearchParameters", pb.GetSearchParametersRequest()),
        ("UpdateSearchParameters", request(time_bonus=0.1)),
    ):
        kind.tenant_id = str(uuid4())  # type: ignore[attr-defined]
        assert (await failure(admin.call(name, kind))).reason == "RESOURCE_NOT_FOUND"


async def test_on_the_command_line(run: Run) -> None:
    command = ("tenant", "search-parameters")

    changed = await run(*command, "set", "time_bonus=0.25", "compared_events=50")
    shown = await run(*command, "show", "--json")
    await run(*command, "set", "time_bonus=default")

    assert "time_bonus\t0.25\town\n" in changed.stdout
    assert "speaker_bonus\t0.3\tdefault\n" in changed.stdout
    assert shown["overridden"] == ["compared_events", "time_bonus"]
    assert (await run(*command, "show", "--json"))["overridden"] == ["compared_events"]
    for setting, says in (
        ("bonus=1", "names no parameter; there are candidates_per_hit"),
        ("compared_events=1.5", "needs a whole number or 'default'"),
        ("time_bonus=much", "needs a number or 'default'"),
    ):
        failed = await run(*command, "set", setting, exit_code=2)
        assert says in failed.error
