"""Values: wrong and contradictory ones are refused, all are described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.helm.charts import CHART, Scenario, merged, template
from tests.helm.readme import BEGIN, END, PARENTS_VALUES, leaves, table

EDGE_PARTS: list[tuple[str, dict[str, Any], str]] = [
    ("indexer", {"indexer": {"enabled": True}}, "indexer"),
    ("replicas", {"storage": {"replicas": 2}}, "storage"),
    ("scaling", {"storage": {"autoscaling": {"enabled": True}}}, "storage"),
    ("qdrant", {"vectors": {"qdrantUrl": "http://q:6333"}}, "qdrant"),
    ("qdrant pod", {"evaluation": {"qdrant": {"enabled": True}}}, "qdrant"),
]
EDGE: dict[str, Any] = {
    "vectors": {"engine": "edge"},
    "indexer": {"enabled": False},
    "evaluation": {"qdrant": {"enabled": False}},
}
CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    *((f"edge and {name}", merged(EDGE, values), text) for name, values, text in EDGE_PARTS),
    ("no qdrant", {"evaluation": {"qdrant": {"enabled": False}}}, "vectors.qdrantUrl"),
    ("two qdrants", {"vectors": {"qdrantUrl": "http://q:6333"}}, "exclude each other"),
    (
        "no database",
        {"evaluation": {"postgresql": {"enabled": False}}},
        "database.existingSecret must name",
    ),
    ("two databases", {"database": {"existingSecret": "x"}}, "exclude each other"),
    ("tls without secrets", {"tls": {"mode": "secret"}}, "storageSecret"),
    ("secrets without tls", {"tls": {"storageSecret": "x"}}, "storageSecret"),
    ("no issuer", {"tls": {"mode": "certManager"}}, "issuerName"),
    ("mtls without tls", {"tls": {"clientAuthentication": True}}, "clientAuthentication"),
    ("keda", {"indexer": {"autoscaling": {"mode": "keda"}}}, "prometheusUrl"),
    (
        "scaling nobody",
        {"indexer": {"enabled": False, "autoscaling": {"mode": "external"}}},
        "indexer.autoscaling",
    ),
    (
        "more than most",
        {"context": {"autoscaling": {"minReplicas": 5, "maxReplicas": 4}}},
        "context.autoscaling.minReplicas",
    ),
    ("workers without a key", {"workers": {"enabled": True}}, "workers.enabled needs"),
    ("another model", {"embedding": {"model": "BAAI/bge-small-en-v1.5"}}, "modelVolume"),
]
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("unknown value", {"storage": {"replicaCount": 3}}, "replicaCount"),
    ("unknown group", {"storrage": {}}, "storrage"),
    ("type", {"storage": {"replicas": "three"}}, "/storage/replicas"),
    ("range", {"context": {"autoscaling": {"cpuUtilizationPercent": 120}}}, "cpuUtilization"),
    ("floating tag", {"storage": {"image": {"tag": "latest"}}}, "/storage/image/tag"),
    ("digest", {"storage": {"image": {"digest": "sha256:1"}}}, "/storage/image/digest"),
    ("level", {"context": {"logLevel": "loud"}}, "/context/logLevel"),
    ("limits", {"storage": {"resources": {"limits": None}}}, "/storage/resources"),
    ("address", {"vectors": {"qdrantUrl": "qdrant:6333"}}, "/vectors/qdrantUrl"),
    ("schedule", {"maintenance": {"schedule": "daily"}}, "/maintenance/schedule"),
    ("quantity", {"vectors": {"edge": {"size": "ten"}}}, "/vectors/edge/size"),
]


def cases(found: list[tuple[str, dict[str, Any], str]]) -> list[Any]:
    return [pytest.param(values, text, id=name) for name, values, text in found]


@pytest.mark.parametrize(("values", "text"), cases(CONTRADICTIONS))
def test_a_contradiction_is_refused(values: dict[str, Any], text: str) -> None:
    done = template(Scenario("evaluation", values), "--kube-version", "1.37.0")
    assert done.returncode != 0
    assert text in done.stderr


@pytest.mark.parametrize(("values", "text"), cases(CONTRADICTIONS))
def test_the_templates_explain_a_contradiction(values: dict[str, Any], text: str) -> None:
    without_schema = ("--kube-version", "1.37.0", "--skip-schema-validation")
    done = template(Scenario("evaluation", values), *without_schema)
    assert done.returncode != 0
    assert "execution error" in done.stderr
    assert text.lower() in done.stderr.lower()


@pytest.mark.parametrize(("values", "text"), cases(WRONG))
def test_a_wrong_value_is_refused_by_its_name(values: dict[str, Any], text: str) -> None:
    done = template(Scenario("evaluation", values), "--kube-version", "1.37.0")
    assert done.returncode != 0
    assert "schema" in done.stderr
    assert text in done.stderr


def test_an_old_kubernetes_is_refused() -> None:
    done = template(Scenario("evaluation"), "--kube-version", "1.29.0")
    assert "requires kubeVersion" in done.stderr


def groups(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        if "properties" in node and node.get("type") == "object":
            yield node
        for key, value in node.items():
            if key != "allOf":
                yield from groups(value)


def test_every_group_of_the_schema_is_closed() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    found = list(groups(schema))
    assert found
    assert all(node.get("additionalProperties") is False for node in found)


def test_schema_and_defaults_name_the_same_values() -> None:
    def paths(values: Any, known: set[tuple[str, ...]], at: tuple[str, ...] = ()) -> Any:
        if isinstance(values, dict) and at not in known:
            return {it for key in values for it in paths(values[key], known, (*at, key))}
        return {at}

    described = {path for path, _ in leaves()}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert paths(values, described) == described
    assert PARENTS_VALUES not in values


def test_the_readme_has_every_value() -> None:
    text = (CHART / "README.md").read_text()
    assert text.partition(BEGIN)[2].partition(END)[0] == table(), "make helm-readme writes it anew"
