"""What `helm template` makes of the chart is what Kubernetes takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.helm.charts import CHART, ROOT, SCENARIOS, rendered, tool, values_of
from tests.helm.versions import KUBERNETES_VERSIONS

SCHEMAS = "{{.ResourceKind}}{{.KindSuffix}}.json"
LOCATIONS = (
    f"build/tools/schemas/{{{{.NormalizedKubernetesVersion}}}}{{{{.StrictSuffix}}}}/{SCHEMAS}",
    f"tests/helm/crds/{SCHEMAS}",
)


def validated(path: Path, version: str) -> tuple[int, dict[str, Any]]:
    locations = [part for place in LOCATIONS for part in ("-schema-location", place)]
    done = tool(
        *("kubeconform", "-strict", "-summary", "-output", "json"),
        *("-kubernetes-version", version, *locations, str(path)),
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("example", ["evaluation", "production"])
def test_lint_finds_nothing(example: str) -> None:
    done = tool(
        *("helm", "lint", "--strict", str(CHART), "--kube-version", KUBERNETES_VERSIONS[-1]),
        *("--values", str(CHART / "examples" / f"{example}.yaml")),
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_every_scenario_is_valid(version: str, tmp_path: Path) -> None:
    manifests = [item for name in SCENARIOS for item in rendered(name, version)]
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all(manifests))

    code, report = validated(path, version)

    assert (code, report.get("resources", [])) == (0, [])
    assert report["summary"] == {
        "valid": len(manifests), "invalid": 0, "errors": 0, "skipped": 0
    }  # fmt: skip


def test_an_unknown_field_is_seen(tmp_path: Path) -> None:
    [service, *_] = [item for item in rendered("production") if item["kind"] == "Service"]
    monitors = [item for item in rendered("production") if item["kind"] == "ServiceMonitor"]
    path = tmp_path / "wrong.yaml"
    wrong = [{**item, "spec": {**item["spec"], "colour": "red"}} for item in (service, monitors[0])]
    path.write_text(yaml.safe_dump_all(wrong))

    code, report = validated(path, KUBERNETES_VERSIONS[-1])

    assert code == 1
    assert report["summary"]["invalid"] == 2


def test_the_chart_and_the_services_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    for package in ("storage", "context"):
        project = (ROOT / f"services/{package}/pyproject.toml").read_text()
        assert f'version = "{chart["appVersion"]}"' in project


def switches(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Path and possible values of everything that is either this or that."""
    root = json.loads((CHART / "values.schema.json").read_text())
    for name, found in schema.get("properties", {}).items():
        reference = found.get("$ref", "").rpartition("/")[2]
        node = root["$defs"][reference] if reference else found
        if node.get("type") == "boolean":
            yield from (((*path, name), value) for value in (True, False))
        yield from (((*path, name), value) for value in node.get("enum", ()))
        yield from switches(node, (*path, name))


def test_the_scenarios_turn_every_switch_both_ways() -> None:
    def at(values: Any, path: tuple[str, ...]) -> Any:
        for part in path:
            values = values[part]
        return values

    schema = json.loads((CHART / "values.schema.json").read_text())
    every = [values_of(scenario) for scenario in SCENARIOS.values()]

    unturned = [
        (".".join(path), value)
        for path, value in switches(schema)
        if not any(at(values, path) == value for values in every)
    ]
    assert unturned == []
