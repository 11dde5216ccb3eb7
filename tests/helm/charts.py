"""The chart as `helm template` renders it, for settings that together turn every switch."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from tests.helm.versions import KUBERNETES_VERSIONS

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/annals"
BIN = ROOT / "build/tools/bin"
NAMESPACE = "conversations"
RELEASE = "annals"
Values = Mapping[str, Any]
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """An example, and what differs from it."""

    example: str
    values: Values = field(default_factory=dict)


EDGE: Values = {
    "vectors": {"engine": "edge", "edge": {"storageClassName": "fast"}},
    "evaluation": {"qdrant": {"enabled": False}},
    "indexer": {"enabled": False},
}
SCENARIOS: dict[str, Scenario] = {
    "evaluation": Scenario("evaluation"),
    "production": Scenario("production"),
    "edge": Scenario("evaluation", EDGE),
    "bare": Scenario(
        "evaluation",
        {
            "networkPolicy": {"enabled": False},
            "migrations": {"enabled": False},
            "maintenance": {"enabled": False},
            "storage": {"topologySpread": {"enabled": False}},
            "indexer": {"topologySpread": {"enabled": False}},
            "context": {"topologySpread": {"enabled": False}},
        },
    ),
    "secret-tls": Scenario(
        "production",
        {
            "tls": {
                "mode": "secret",
                "clientAuthentication": False,
                "storageSecret": "storage-tls",
                "contextSecret": "context-tls",
                "certManager": {"issuerName": ""},
            },
            "storage": {"logLevel": "debug", "image": {"pullPolicy": "Always"}},
            "context": {"logLevel": "warning", "image": {"pullPolicy": "Always"}},
            "indexer": {"logLevel": "error"},
            "workers": {
                "logLevel": "warning",
                "podDisruptionBudget": {"enabled": False},
                "topologySpread": {"enabled": False},
            },
        },
    ),
    "external-metric": Scenario(
        "production",
        {
            "indexer": {
                "autoscaling": {"mode": "external"},
                "topologySpread": {"whenUnsatisfiable": "DoNotSchedule"},
                "logLevel": "debug",
            },
            "tls": {"certManager": {"issuerKind": "Issuer"}},
            "storage": {"logLevel": "warning", "image": {"pullPolicy": "Never"}},
            "context": {"logLevel": "error", "image": {"pullPolicy": "Never"}},
        },
    ),
    "everything": Scenario(
        "production",
        {
            "commonLabels": {"team": "assistants"},
            "imagePullSecrets": [{"name": "registry"}],
            "coldStorage": {"url": "s3://words/annals", "optionsSecret": "annals-cold"},
            "embedding": {
                "model": "BAAI/bge-small-en-v1.5",
                "modelVolume": {"persistentVolumeClaim": {"claimName": "model"}},
            },
            "networkPolicy": {
                "storageClients": [{"podSelector": {"matchLabels": {"annals": "client"}}}],
                "storageExtraEgress": [{"ports": [{"protocol": "TCP", "port": 443}]}],
            },
            "storage": {
                "image": {"digest": "sha256:" + "a" * 64},
                "settings": {"BM25_LANGUAGE": "german"},
                "logLevel": "error",
                "podAnnotations": {"note": "one"},
                "nodeSelector": {"pool": "annals"},
                "tolerations": [{"key": "annals", "operator": "Exists"}],
                "affinity": {"nodeAffinity": {}},
            },
            "indexer": {"priorityClassName": "batch", "logLevel": "warning"},
            "workers": {"logLevel": "debug", "settings": {"WORKER__NAME": "night"}},
            "context": {"logLevel": "debug"},
        },
    ),
    "unscaled": Scenario(
        "production",
        {
            "tls": {"mode": "none", "clientAuthentication": False},
            "storage": {"autoscaling": {"enabled": False}},
            "context": {"autoscaling": {"enabled": False}},
            "indexer": {"autoscaling": {"mode": "none"}},
            "workers": {
                "logLevel": "error",
                "topologySpread": {"whenUnsatisfiable": "DoNotSchedule"},
            },
            "monitoring": {
                "rules": {"enabled": False},
                "serviceMonitor": {"enabled": False},
                "dashboards": {"enabled": False},
            },
        },
    ),
}


@lru_cache
def rendered(name: str, version: str = KUBERNETES_VERSIONS[-1]) -> tuple[Manifest, ...]:
    """The manifests of a scenario; hooks and tests are among them."""
    done = template(SCENARIOS[name], "--kube-version", version)
    assert done.returncode == 0, done.stderr
    return tuple(item for item in yaml.safe_load_all(done.stdout) if item)


def template(scenario: Scenario, *args: str) -> subprocess.CompletedProcess[str]:
    """Run `helm template`."""
    example = CHART / "examples" / f"{scenario.example}.yaml"
    run = ["template", RELEASE, str(CHART), "--namespace", NAMESPACE]
    given = ["--values", str(example), "--values", "-", *args]
    return tool("helm", *run, *given, stdin=yaml.safe_dump(dict(scenario.values)))


def tool(name: str, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of the installed tools in the root of the repository."""
    return subprocess.run(
        [BIN / name, *args], input=stdin, cwd=ROOT, capture_output=True, text=True, check=False
    )


def values_of(scenario: Scenario) -> dict[str, Any]:
    """Defaults, example and differences, one above the other."""
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    example = yaml.safe_load((CHART / "examples" / f"{scenario.example}.yaml").read_text())
    return merged(merged(values, example), scenario.values)


def merged(below: Any, above: Any) -> Any:
    """Mappings are merged, anything else is replaced."""
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {
        key: merged(below.get(key), above[key]) if key in above else below[key]
        for key in {**below, **above}
    }


def of_kind(manifests: tuple[Manifest, ...], *kinds: str) -> list[Manifest]:
    """The manifests of these kinds."""
    return [item for item in manifests if item["kind"] in kinds]


def pod_of(manifest: Manifest) -> Manifest | None:
    """The template of a manifest's pods: metadata and spec; None when it has none."""
    spec = manifest.get("spec", {})
    match manifest["kind"]:
        case "Pod":
            return manifest
        case "CronJob":
            return dict(spec["jobTemplate"]["spec"]["template"])
        case "Deployment" | "StatefulSet" | "Job":
            return dict(spec["template"])
    return None


def pods(manifests: tuple[Manifest, ...]) -> list[tuple[Manifest, Manifest]]:
    """Every manifest with pods, and their template."""
    found = ((item, pod_of(item)) for item in manifests)
    return [(item, pod) for item, pod in found if pod is not None]
