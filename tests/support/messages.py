"""Walks messages and their descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

Path = tuple[FieldDescriptor, ...]
"""Fields from the request down; every repeated one stands for its first item."""


def leaf_fields(descriptor: Descriptor) -> Iterator[Path]:
    """Every scalar field below a message; Google's own messages count as leaves."""
    for field in descriptor.fields:
        kind = field.message_type
        if kind is None or kind.full_name.startswith("google."):
            yield (field,)
        else:
            yield from ((field, *rest) for rest in leaf_fields(kind))


def dotted(path: Path) -> str:
    """`conversation.client_context.page_url`."""
    return ".".join(field.name for field in path)


def put(message: Message, path: Path, value: Any) -> None:
    """Set a leaf; items of repeated fields on the way are made when missing."""
    *above, leaf = path
    target: Any = message
    for field in above:
        inner = getattr(target, field.name)
        if field.is_repeated:
            inner = inner[0] if len(inner) else inner.add()
        target = inner
    if leaf.is_repeated:
        del getattr(target, leaf.name)[:]
        getattr(target, leaf.name).append(value)
    elif leaf.message_type is not None:
        getattr(target, leaf.name).CopyFrom(value)
    else:
        setattr(target, leaf.name, value)


def new(descriptor: Descriptor) -> Any:
    """An empty message."""
    return GetMessageClass(descriptor)()


def is_string(path: Path) -> bool:
    return path[-1].type == FieldDescriptor.TYPE_STRING
