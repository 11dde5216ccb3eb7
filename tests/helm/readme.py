"""Writes the chart's table of values from schema and defaults: `python -m tests.helm.readme`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from tests.helm.charts import CHART

BEGIN, END = "<!-- values -->\n", "<!-- end of values -->\n"
PARENTS_VALUES = "global"


def main() -> None:
    path = CHART / "README.md"
    text = path.read_text()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    path.write_text(f"{before}{BEGIN}{table()}{END}{after}")


def table() -> str:
    """Every value with its default and meaning."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = [
        f"| `{'.'.join(path)}` | {_shown(_at(values, path))} | {_meaning(node)} |\n"
        for path, node in leaves()
    ]
    return "| value | default | meaning |\n|---|---|---|\n" + "".join(rows)


def leaves() -> list[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Path and schema of every value that is no group of others."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    return [it for it in _leaves(schema, schema["$defs"], ()) if it[0] != (PARENTS_VALUES,)]


def _leaves(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    for name, found in schema["properties"].items():
        reference = found.get("$ref", "").rpartition("/")[2]
        node = {**definitions[reference], **found} if reference else found
        if "properties" in node and reference != "resources":
            yield from _leaves(node, definitions, (*path, name))
        else:
            yield (*path, name), node


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        values = values[part]
    return values


def _shown(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _meaning(node: Mapping[str, Any]) -> str:
    kinds = [f"`{value}`" for value in node.get("enum", ()) if f"`{value}`" not in _text(node)]
    return _text(node) + (f" One of {', '.join(kinds)}." if kinds else "")


def _text(node: Mapping[str, Any]) -> str:
    return str(node["description"]).replace("|", "\\|")


if __name__ == "__main__":
    main()
