"""TenantService: how a tenant's searches rank."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from annals.storage.v1 import resources_pb2 as resources
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.validation import bounded
from annals_storage.commands.search_parameters import TenantParameters
from annals_storage.domain.search_parameters import BOUNDS, SearchParameters
from annals_storage.handlers.access import administered_tenant

EVERYTHING = "*"


class SearchParametersHandler:
    """Translates; the use cases are in commands.search_parameters."""

    def __init__(self, parameters: TenantParameters) -> None:
        self._parameters = parameters

    async def GetSearchParameters(
        self, request: pb.GetSearchParametersRequest, context: Any
    ) -> pb.GetSearchParametersResponse:
        tenant_id = administered_tenant("GetSearchParameters", request.tenant_id)
        parameters, own = await self._parameters.get(tenant_id)
        return pb.GetSearchParametersResponse(
            parameters=_message(parameters), overridden=sorted(own)
        )

    async def UpdateSearchParameters(
        self, request: pb.UpdateSearchParametersRequest, context: Any
    ) -> pb.UpdateSearchParametersResponse:
        tenant_id = administered_tenant("UpdateSearchParameters", request.tenant_id)
        values = {name: _value(request.parameters, name) for name in _names(request)}
        parameters, own = await self._parameters.update(tenant_id, values)
        return pb.UpdateSearchParametersResponse(
            parameters=_message(parameters), overridden=sorted(own)
        )


def _names(request: pb.UpdateSearchParametersRequest) -> list[str]:
    named = sorted(set(request.update_mask.paths))
    if not named:
        raise FieldInvalidError("update_mask", f"is required: * or any of {', '.join(BOUNDS)}")
    if named == [EVERYTHING]:
        return list(BOUNDS)
    for name in named:
        if name not in BOUNDS:
            raise FieldInvalidError(
                "update_mask", f"may name {', '.join(BOUNDS)}, or * alone", name
            )
    for field, _ in request.parameters.ListFields():
        if field.name not in named:
            raise FieldInvalidError(
                f"parameters.{field.name}", "is given, but update_mask does not name it"
            )
    return named


def _value(parameters: resources.SearchParameters, name: str) -> float | None:
    """Return a parameter, None when it is not given."""
    if not parameters.HasField(name):  # type: ignore[arg-type]
        return None
    value: float = getattr(parameters, name)
    bounded(value, f"parameters.{name}", low=BOUNDS[name].low, high=BOUNDS[name].high)
    return value


def _message(parameters: SearchParameters) -> resources.SearchParameters:
    return resources.SearchParameters(**asdict(parameters))
