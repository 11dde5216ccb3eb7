"""One gRPC service out of parts, each a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Servicer = TypeVar("Servicer")


def compose(base: Callable[[], Servicer], *parts: object) -> Servicer:
    """Return a servicer of `base` whose methods are those of the parts.

    A method is a part's when the part has an attribute of its name. Raises ValueError when a
    method of the service is nobody's or several parts'.
    """
    servicer: Any = base()
    names = [name for name in vars(base) if name[0].isupper()]
    for name in names:
        owners = [part for part in parts if hasattr(part, name)]
        if len(owners) != 1:
            service = type(servicer).__name__
            raise ValueError(f"{service}.{name} is implemented by {len(owners)} parts")
        setattr(servicer, name, getattr(owners[0], name))
    return servicer  # type: ignore[no-any-return]
