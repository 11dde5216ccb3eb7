"""What code runs: two processes with the same version answer alike."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_COUNTED = (".py", ".sql")


@cache
def code_version(package: str) -> str:
    """Return the SHA-256 of a package's own sources, in hexadecimal digits."""
    digest = hashlib.sha256()
    _add(digest, files(package), "")
    return digest.hexdigest()


def _add(digest: hashlib._Hash, folder: Traversable, path: str) -> None:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            _add(digest, entry, name)
        elif name.endswith(_COUNTED):
            text = entry.read_bytes()
            digest.update(f"{name}\0{len(text)}\0".encode() + text)
