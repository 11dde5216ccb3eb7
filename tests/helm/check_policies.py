"""What every pod of the chart is held to, in every scenario."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_settings import BaseSettings
from tests.helm.charts import (
    NAMESPACE,
    SCENARIOS,
    Manifest,
    of_kind,
    pods,
    rendered,
    values_of,
)

from annals_common.settings import describe_settings
from annals_context.settings import ContextSettings
from annals_storage.settings import StorageSettings

LASTING = ("Deployment", "StatefulSet")
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def security_flaws(pod: Manifest) -> list[str]:
    spec = pod["spec"]
    context = spec.get("securityContext", {})
    rules = {
        "runs as root": context.get("runAsNonRoot") is True and context.get("runAsUser", 0) > 0,
        "no seccomp profile": context.get("seccompProfile") == {"type": "RuntimeDefault"},
        "token mounted": spec.get("automountServiceAccountToken") is False,
        "default account": spec.get("serviceAccountName", "default") != "default",
        "service links": spec.get("enableServiceLinks") is False,
        "namespaces of the host": not {"hostNetwork", "hostPID", "hostIPC"} & set(spec),
        "path of the host": not any("hostPath" in volume for volume in spec.get("volumes", ())),
    }
    containers = [*spec["containers"], *spec.get("initContainers", ())]
    return [
        *(flaw for flaw, holds in rules.items() if not holds),
        *(flaw for container in containers for flaw in container_flaws(container)),
    ]


def container_flaws(container: Manifest) -> list[str]:
    context = container.get("securityContext", {})
    _, _, tag = container["image"].rpartition("/")[2].partition(":")
    resources = container.get("resources", {})
    rules = {
        "privileges": context.get("allowPrivilegeEscalation") is False
        and not context.get("privileged"),
        "capabilities": context.get("capabilities") == {"drop": ["ALL"]},
        "writable root": context.get("readOnlyRootFilesystem") is True,
        "floating tag": tag not in {"", "latest"},
        "no limits": all(
            resources.get(kind, {}).get(name)
            for kind in ("requests", "limits")
            for name in ("cpu", "memory")
        ),
    }
    return [f"{container['name']}: {flaw}" for flaw, holds in rules.items() if not holds]


def selects(selector: Manifest, labels: Manifest) -> bool:
    return selector["matchLabels"].items() <= labels.items()


@pytest.fixture(params=sorted(SCENARIOS))
def scenario(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def manifests(scenario: str) -> tuple[Manifest, ...]:
    return rendered(scenario)


def test_pods_can_do_little(manifests: tuple[Manifest, ...]) -> None:
    flaws = [(item["metadata"]["name"], security_flaws(pod)) for item, pod in pods(manifests)]
    assert [found for found in flaws if found[1]] == []


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        ({"securityContext": {}}, "runs as root"),
        ({"hostNetwork": True}, "namespaces of the host"),
        ({"volumes": [{"name": "x", "hostPath": {"path": "/"}}]}, "path of the host"),
        ({"automountServiceAccountToken": True}, "token mounted"),
    ],
)
def test_a_flaw_of_a_pod_is_seen(change: Manifest, flaw: str) -> None:
    [(_, pod), *_] = pods(rendered("production"))
    assert flaw in security_flaws({"spec": {**pod["spec"], **change}})


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        ({"image": "annals-storage:latest"}, "floating tag"),
        ({"image": "host:5000/annals-storage"}, "floating tag"),
        ({"resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}, "no limits"),
        ({"securityContext": {}}, "writable root"),
    ],
)
def test_a_flaw_of_a_container_is_seen(change: Manifest, flaw: str) -> None:
    [(_, pod), *_] = pods(rendered("production"))
    container = {**pod["spec"]["containers"][0], **change}
    assert f"{container['name']}: {flaw}" in container_flaws(container)


def test_lasting_pods_are_probed_and_end_in_time(
    scenario: str, manifests: tuple[Manifest, ...]
) -> None:
    values = values_of(SCENARIOS[scenario])
    for item in of_kind(manifests, *LASTING):
        spec = item["spec"]["template"]["spec"]
        [container] = spec["containers"]
        assert [probe for probe in PROBES if probe not in container] == []
        component = item["metadata"]["labels"]["app.kubernetes.io/component"]
        if component in {"storage", "context"}:
            needed = values[component]["preStopSeconds"] + values[component]["drainSeconds"]
            assert spec["terminationGracePeriodSeconds"] > needed
            assert container["lifecycle"]["preStop"]["sleep"]["seconds"] > 0
            assert container["livenessProbe"]["grpc"]["service"] == "liveness"
            assert container["readinessProbe"]["grpc"]["service"] == ""


def test_every_pod_has_a_network_policy(scenario: str, manifests: tuple[Manifest, ...]) -> None:
    policies = of_kind(manifests, "NetworkPolicy")
    if not values_of(SCENARIOS[scenario])["networkPolicy"]["enabled"]:
        assert policies == []
        return
    for item, pod in pods(manifests):
        labels = pod["metadata"]["labels"]
        own = [it for it in policies if selects(it["spec"]["podSelector"], labels)]
        assert own, item["metadata"]["name"]
        for policy in own:
            assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]


def components_at(rules: list[Manifest], side: str, port: int) -> set[str]:
    """Components that rules name at a port; "anyone" for a rule without peers."""
    found: set[str] = set()
    for rule in rules:
        if port not in {it["port"] for it in rule["ports"]}:
            continue
        for peer in rule.get(side, [{}]):
            labels = peer.get("podSelector", {}).get("matchLabels", {})
            found.add(labels.get("app.kubernetes.io/component", "anyone"))
    return found


def policy_of(name: str, component: str) -> Manifest:
    [policy] = [
        item["spec"]
        for item in of_kind(rendered(name), "NetworkPolicy")
        if item["metadata"]["labels"]["app.kubernetes.io/component"] == component
    ]
    return dict(policy)


def test_only_context_workers_and_declared_clients_reach_storage() -> None:
    assert components_at(policy_of("production", "storage")["ingress"], "from", 50051) == {
        *("context", "test", "workers"),
    }
    declared = components_at(policy_of("everything", "storage")["ingress"], "from", 50051)
    assert declared == {"context", "test", "workers", "anyone"}


@pytest.mark.parametrize("component", ["context", "workers"])
def test_context_and_workers_reach_storage_and_names_alone(component: str) -> None:
    egress = policy_of("production", component)["egress"]
    assert {port["port"] for rule in egress for port in rule["ports"]} == {53, 50051}
    assert components_at(egress, "to", 50051) == {"storage"}


def test_postgresql_and_qdrant_are_reached_by_those_who_need_them() -> None:
    reaching = {
        port: {
            item["metadata"]["labels"]["app.kubernetes.io/component"]
            for item in of_kind(rendered("production"), "NetworkPolicy")
            if components_at(item["spec"]["egress"] or [], "to", port)
        }
        for port in (5432, 6334)
    }
    assert reaching == {
        5432: {"storage", "indexer", "maintenance", "migration"},
        6334: {"storage", "indexer"},
    }
    ingress = policy_of("evaluation", "evaluation-postgresql")["ingress"]
    assert components_at(ingress, "from", 5432) == reaching[5432]


def test_what_is_referred_to_exists(manifests: tuple[Manifest, ...]) -> None:
    named = {(item["kind"], item["metadata"]["name"]) for item in manifests}
    for item, pod in pods(manifests):
        spec = pod["spec"]
        assert ("ServiceAccount", spec["serviceAccountName"]) in named
        for container in spec["containers"]:
            for source in container.get("envFrom", ()):
                assert ("ConfigMap", source["configMapRef"]["name"]) in named
            mounts = {it["name"] for it in container.get("volumeMounts", ())}
            claims = {it["metadata"]["name"] for it in item["spec"].get("volumeClaimTemplates", ())}
            assert mounts == {it["name"] for it in spec.get("volumes", ())} | claims
    for scaler in of_kind(manifests, "HorizontalPodAutoscaler", "ScaledObject"):
        assert ("Deployment", scaler["spec"]["scaleTargetRef"]["name"]) in named
    for item in manifests:
        assert item["metadata"]["namespace"] == NAMESPACE


def test_selectors_find_pods(manifests: tuple[Manifest, ...]) -> None:
    labels = [pod["metadata"]["labels"] for _, pod in pods(manifests)]
    services = [item["spec"]["selector"] for item in of_kind(manifests, "Service")]
    budgets = of_kind(manifests, "PodDisruptionBudget")
    for selector in [*services, *(it["spec"]["selector"]["matchLabels"] for it in budgets)]:
        assert any(selector.items() <= own.items() for own in labels), selector
    for monitor in of_kind(manifests, "ServiceMonitor"):
        selector = monitor["spec"]["selector"]
        assert [
            it["metadata"]["name"]
            for it in of_kind(manifests, "Service")
            if selects(selector, it["metadata"]["labels"])
        ] == [monitor["metadata"]["name"]]


def test_services_for_clients_are_headless(manifests: tuple[Manifest, ...]) -> None:
    assert {it["spec"]["clusterIP"] for it in of_kind(manifests, "Service")} == {"None"}


def test_who_scales_has_no_replicas_of_its_own(manifests: tuple[Manifest, ...]) -> None:
    scaled = {
        it["spec"]["scaleTargetRef"]["name"]
        for it in of_kind(manifests, "HorizontalPodAutoscaler", "ScaledObject")
    }
    for item in of_kind(manifests, "Deployment"):
        assert ("replicas" in item["spec"]) == (item["metadata"]["name"] not in scaled)


def settings_kinds() -> dict[str, type[BaseSettings]]:
    return {
        "storage": StorageSettings,
        "indexer": StorageSettings,
        "context": ContextSettings,
        "workers": ContextSettings,
    }


def test_the_services_accept_their_settings(
    manifests: tuple[Manifest, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANNALS_STORAGE_DATABASE_URL", "postgresql://annals_app@database/annals")
    for item in of_kind(manifests, "ConfigMap"):
        kind = settings_kinds().get(item["metadata"]["labels"]["app.kubernetes.io/component"])
        if kind is None:
            continue
        known = {variable for variable, _, _ in describe_settings(kind)}
        assert set(item["data"]) <= known
        with monkeypatch.context() as patched:
            for variable, value in item["data"].items():
                patched.setenv(variable, value)
            kind()


def test_secrets_become_settings_that_exist(manifests: tuple[Manifest, ...]) -> None:
    known = {variable for variable, _, _ in describe_settings(StorageSettings)}
    for item, pod in pods(manifests):
        for container in pod["spec"]["containers"]:
            variables = {it["name"] for it in container.get("env", ())}
            storage = {it for it in variables if it.startswith("ANNALS_STORAGE_")}
            assert storage <= {*known, "ANNALS_STORAGE_OWNER_URL"}, item["metadata"]["name"]


def annotations_of(name: str, deployment: str) -> Any:
    [item] = [
        it
        for it in of_kind(rendered(name), "Deployment")
        if it["metadata"]["name"] == f"annals-{deployment}"
    ]
    return item["spec"]["template"]["metadata"]["annotations"]


def test_a_changed_setting_starts_pods_anew() -> None:
    before = annotations_of("production", "storage")["checksum/config"]
    assert annotations_of("everything", "storage")["checksum/config"] != before
