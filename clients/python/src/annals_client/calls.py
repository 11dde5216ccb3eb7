"""Calls as values: built once, made by either client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Generic, TypeVar

import grpc

from annals_client.stubs import Stubs

STORAGE = "storage"
CONTEXT = "context"
T = TypeVar("T")
U = TypeVar("U")
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class Credential(Enum):
    """Which key a call is made with."""

    API_KEY = auto()
    ADMIN_KEY = auto()
    """The admin key; without one, the API key, which may be an admin's."""
    NONE = auto()


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One unary call and what to take from its answer."""

    select: Callable[[Stubs], Any]
    request: Any
    pick: Callable[[Any], T]
    safe: bool
    timeout_s: float | None = None
    credential: Credential = Credential.API_KEY
    service: str = STORAGE

    @property
    def method(self) -> str:
        """Name of the method, such as "AppendEvents"."""
        return str(self.request.DESCRIPTOR.name).removesuffix("Request")

    def map(self, pick: Callable[[T], U]) -> Call[U]:
        """The same call, with `pick` applied to what it returns."""
        before = self.pick
        return Call(
            self.select,
            self.request,
            lambda answer: pick(before(answer)),
            self.safe,
            self.timeout_s,
            self.credential,
            self.service,
        )

    def by(self, credential: Credential) -> Call[T]:
        """The same call, made with another key."""
        return replace(self, credential=credential)


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list that comes in pages. `items` and the token are read from each answer."""

    first: Call[Any]
    items: Callable[[Any], Sequence[T]]
    limit: int | None = None

    def page(self, token: str) -> Call[Any]:
        """The call for the page behind `token`; "" is the first."""
        request = type(self.first.request)()
        request.CopyFrom(self.first.request)
        request.page_token = token
        return replace(self.first, request=request)


def safe_call(
    select: Callable[[Stubs], grpc.UnaryUnaryMultiCallable[RequestT, ResponseT]],
    request: RequestT,
    timeout: float | None,
) -> Call[ResponseT]:
    """Build a call that may be sent again: a read, or a write the server deduplicates."""
    return Call(select, request, _whole, safe=True, timeout_s=timeout, service=_service(request))


def single_call(
    select: Callable[[Stubs], grpc.UnaryUnaryMultiCallable[RequestT, ResponseT]],
    request: RequestT,
    timeout: float | None,
) -> Call[ResponseT]:
    """Build a call that is sent once: a write that would happen twice."""
    return Call(select, request, _whole, safe=False, timeout_s=timeout, service=_service(request))


def tenant_credential(tenant_id: str) -> Credential:
    """Naming a tenant takes the admin key; one's own tenant is in one's own key."""
    return Credential.ADMIN_KEY if tenant_id else Credential.API_KEY


def _service(request: Any) -> str:
    package = request.DESCRIPTOR.file.package
    return CONTEXT if package.startswith("annals.context") else STORAGE


def _whole(answer: Any) -> Any:
    return answer
