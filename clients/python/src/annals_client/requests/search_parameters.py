"""How a tenant's searches rank. With `tenant_id` the admin key is used, else the tenant's own."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.field_mask_pb2 import FieldMask

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_client.calls import Call, safe_call, single_call, tenant_credential

NAMES = tuple(field.name for field in res.SearchParameters.DESCRIPTOR.fields)


def get(
    *, tenant_id: str = "", timeout: float | None = None
) -> Call[pb.GetSearchParametersResponse]:
    """Read all parameters, and which are the tenant's own."""
    request = pb.GetSearchParametersRequest(tenant_id=tenant_id)
    call = safe_call(lambda stubs: stubs.tenants.GetSearchParameters, request, timeout)
    return call.by(tenant_credential(tenant_id))


def update(
    values: Mapping[str, float | None], *, tenant_id: str = "", timeout: float | None = None
) -> Call[pb.UpdateSearchParametersResponse]:
    """Set parameters by name; None: to the default again. Not repeated by itself.

    Raises ValueError for a name or a kind of number that no parameter has.
    """
    parameters = res.SearchParameters()
    for name, value in values.items():
        if name not in NAMES:
            raise ValueError(f"{name!r} is no search parameter; there are {', '.join(NAMES)}")
        if value is not None:
            _set(parameters, name, value)
    request = pb.UpdateSearchParametersRequest(
        tenant_id=tenant_id, parameters=parameters, update_mask=FieldMask(paths=list(values))
    )
    call = single_call(lambda stubs: stubs.tenants.UpdateSearchParameters, request, timeout)
    return call.by(tenant_credential(tenant_id))


def _set(parameters: res.SearchParameters, name: str, value: float) -> None:
    try:
        setattr(parameters, name, value)
    except TypeError:
        raise ValueError(f"{name} is a whole number, not {value}") from None
    except ValueError:
        raise ValueError(f"{name}: {value} is out of range") from None
