"""Directions of import, as docs/architecture.md draws them.

A rule names what a room may not import. Only `app`, with the `app_*` modules it is made of, and
`__main__` know everything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {
    "annals_common": ROOT / "services/common/src/annals_common",
    "annals_storage": ROOT / "services/storage/src/annals_storage",
    "annals_context": ROOT / "services/context/src/annals_context",
    "annals_local": ROOT / "services/local/src/annals_local",
    "annals_client": ROOT / "clients/python/src/annals_client",
}
OUTSIDE_WORLD = ("grpc", "psycopg", "qdrant_client", "qdrant_edge", "fastembed", "annals.")
FORBIDDEN: dict[str, tuple[str, ...]] = {
    # packages
    "annals_common": ("annals_storage", "annals_context", "annals_local", "annals_client"),
    "annals_storage": ("annals_context", "annals_local", "annals_client"),
    "annals_context": ("annals_storage", "annals_local", "annals_client", "psycopg", "qdrant"),
    "annals_client": ("annals_storage", "annals_context", "annals_local", "psycopg", "qdrant"),
    # rooms of storage
    "annals_storage.domain": (
        *OUTSIDE_WORLD,
        *(f"annals_storage.{room}" for room in (
            "app", "cold", "commands", "embedding", "handlers", "indexer", "ports", "postgres",
            "vectors"
        )),
    ),
    "annals_storage.ports": (
        "annals_storage.postgres", "annals_storage.vectors", "annals_storage.cold", *OUTSIDE_WORLD
    ),
    "annals_storage.commands": (
        *OUTSIDE_WORLD,
        "fsspec",
        *(f"annals_storage.{room}" for room in (
            "app", "cold", "embedding", "handlers", "indexer", "postgres", "vectors"
        )),
    ),
    "annals_storage.handlers": (
        "psycopg",
        "qdrant",
        *(f"annals_storage.{room}" for room in (
            "app", "embedding", "indexer", "postgres", "vectors"
        )),
    ),
    "annals_storage.indexer": (
        *OUTSIDE_WORLD,
        *(f"annals_storage.{room}" for room in (
            "app", "embedding", "handlers", "postgres", "vectors"
        )),
    ),
    **{
        f"annals_storage.{room}": (
            "annals.",
            "annals_storage.app",
            "annals_storage.commands",
            "annals_storage.handlers",
            "annals_storage.indexer",
        )
        for room in ("cold", "postgres", "vectors", "embedding")
    },
    # rooms of context
    "annals_context.domain": (
        *OUTSIDE_WORLD,
        *(f"annals_context.{room}" for room in (
            "app", "clients", "clustering_ports", "commands", "handlers", "ports", "summary_ports",
            "translation",
        )),
    ),
    "annals_context.commands": (
        *OUTSIDE_WORLD,
        *(f"annals_context.{room}" for room in ("app", "clients", "handlers", "translation")),
    ),
    "annals_context.workers": (
        *OUTSIDE_WORLD,
        *(f"annals_context.{room}" for room in (
            "app", "clients", "commands", "handlers", "translation"
        )),
    ),
    "annals_context.handlers": ("annals_context.app", "annals_context.clients"),
    "annals_context.clients": (
        "annals_context.app",
        "annals_context.commands",
        "annals_context.handlers",
    ),
}  # fmt: skip


def modules() -> Iterator[tuple[str, Path]]:
    for package, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join((package, *(part for part in parts if part != "__init__"))), path


def imports(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room_of(name: str) -> str:
    """An `app_*` module stands in `app`'s room."""
    return re.sub(r"^(annals_\w+?\.app)_\w+", r"\1", name)


def violations(module: str, source: str) -> list[str]:
    return sorted(
        f"{module} imports {name}"
        for room, forbidden in FORBIDDEN.items()
        if module == room or module.startswith(f"{room}.")
        for name in imports(source)
        if any(room_of(name) == bad
               or room_of(name).startswith(bad if bad.endswith(".") else f"{bad}.")
               or (bad == "qdrant" and name.startswith("qdrant")) for bad in forbidden)
    )  # fmt: skip


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=str)
def test_imports_point_inwards(module: str, path: Path) -> None:
    assert violations(module, path.read_text()) == []


def test_every_room_has_a_rule_that_some_module_obeys() -> None:
    names = [name for name, _ in modules()]
    assert all(any(n == room or n.startswith(f"{room}.") for n in names) for room in FORBIDDEN)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("annals_context.commands.preparing", "from annals_storage.domain.events import Event"),
        ("annals_storage.commands.searching", "import psycopg"),
        ("annals_storage.domain.search", "from annals_storage import ports"),
        ("annals_storage.commands.erasing", "from annals_storage.app_lifecycle import lifecycle"),
        ("annals_storage.handlers.events", "from annals_storage.postgres.events import X"),
        ("annals_context.domain.model", "from annals.context.v1 import resources_pb2"),
    ],
)
def test_a_wrong_direction_is_seen(module: str, source: str) -> None:
    assert violations(module, source)
