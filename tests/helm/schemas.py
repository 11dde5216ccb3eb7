"""Writes schemas of Kubernetes for kubeconform: `python -m tests.helm.schemas SOURCE TARGET`.

SOURCE is the package kubernetes-validate, unpacked. Its schemas refer to their definitions by a
path of a server; here they stand in one folder for each version.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.helm.versions import KUBERNETES_VERSIONS

DEFINITIONS = "_definitions.json"
SERVER_PATH = f"/api/{DEFINITIONS}"


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    for version in KUBERNETES_VERSIONS:
        folder = source / f"kubernetes_validate/kubernetes-json-schema/v{version}-local-strict"
        write_version(folder, target / f"v{version}-strict")


def write_version(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in source.glob("*.json"):
        schema = beside(json.loads(path.read_bytes()))
        # A schema with an address would be looked up there, and what it refers to as well.
        schema.pop("$id", None)
        (target / path.name).write_text(json.dumps(schema))


def beside(node: Any) -> Any:
    """The schema with references to the file beside it."""
    if isinstance(node, list):
        return [beside(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _referring(key, value) for key, value in node.items()}


def _referring(key: str, value: Any) -> Any:
    # A property may be called $ref too; then its value is a schema.
    if key == "$ref" and isinstance(value, str):
        return value.replace(SERVER_PATH, DEFINITIONS)
    return beside(value)


if __name__ == "__main__":
    main()
