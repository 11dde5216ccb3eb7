"""Alert rules and dashboards ask for what the services export, and alert when they should."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY
from psycopg_pool import AsyncConnectionPool
from tests.helm.charts import NAMESPACE, ROOT, of_kind, rendered, tool
from tests.helm.promql import Selector, grouped_labels, selectors

# Importing the services registers their metrics.
import annals_context.app
import annals_storage.app
from annals_storage.postgres.pool_metrics import PoolCollector

assert annals_context.app
assert annals_storage.app

GRAFANA = ROOT / "deploy/grafana"
RUNBOOKS = ROOT / "docs/runbooks"
PROMETHEUS_OWN = {"up"}
TARGET_LABELS = {"namespace", "job", "pod", "instance", "le"}
SUFFIXES = ("_total", "_bucket", "_sum", "_count", "_created")


def exported() -> dict[str, set[str]]:
    """Every series the services export, with its labels."""
    pool: Any = AsyncConnectionPool("", open=False)
    names: dict[str, set[str]] = {
        sample.name: set(sample.labels)
        for collector in (REGISTRY, PoolCollector(pool))
        for family in collector.collect()
        for sample in family.samples
    }
    for name, collector in REGISTRY._names_to_collectors.items():
        names[name] = set(getattr(collector, "_labelnames", ()))
    return names


def rules() -> list[dict[str, Any]]:
    [found] = of_kind(rendered("production"), "PrometheusRule")
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def recorded() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


def queries(path: Path) -> list[str]:
    panels = json.loads(path.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def unknown(expression: str, names: dict[str, set[str]]) -> list[str]:
    """What an expression asks for that nobody exports."""
    wrong = []
    for found in selectors(expression):
        labels = names.get(found.metric)
        if labels is None:
            wrong.append(found.metric)
        else:
            wrong += sorted(found.labels - labels - TARGET_LABELS - {"annals_selector"})
    known = set().union(*names.values()) | TARGET_LABELS
    return wrong + sorted(grouped_labels(expression) - known)


DASHBOARDS = sorted(GRAFANA.glob("*.json"))


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards_ask_for_what_is_exported(path: Path) -> None:
    names = exported()
    assert queries(path)
    assert {query: wrong for query in queries(path) if (wrong := unknown(query, names))} == {}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards_are_whole(path: Path) -> None:
    dashboard = json.loads(path.read_text())
    panels = dashboard["panels"]
    assert dashboard["uid"] == f"annals-{path.stem}"
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] and panel["description"] for panel in panels)
    for query in queries(path):
        assert re.search(r'namespace=~"\$namespace",job=~"\$job"', query), query


def test_the_chart_ships_every_dashboard() -> None:
    shipped = [
        json.loads(text)
        for item in of_kind(rendered("production"), "ConfigMap")
        if item["metadata"]["labels"]["app.kubernetes.io/component"] == "dashboard"
        for text in item["data"].values()
    ]
    kept = [json.loads(path.read_text()) for path in DASHBOARDS]
    assert sorted(shipped, key=lambda it: it["uid"]) == sorted(kept, key=lambda it: it["uid"])


def test_rules_ask_for_what_is_exported() -> None:
    names = exported() | {name: set[str]() for name in (*PROMETHEUS_OWN, *recorded())}
    assert {r["expr"]: wrong for r in rules() if (wrong := unknown(r["expr"], names))} == {}


def test_rules_keep_to_their_release() -> None:
    for rule in rules():
        for name in {found.metric for found in selectors(rule["expr"])}:
            assert f'{name}{{namespace="{NAMESPACE}",job=~"annals-' in rule["expr"]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    for rule in alerts():
        url = rule["annotations"]["runbook_url"]
        assert url == f"docs/runbooks/{rule['alert']}.md"
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert {"summary", "description"} <= set(rule["annotations"])
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == {rule["alert"] for rule in alerts()}


@pytest.mark.parametrize("path", sorted(RUNBOOKS.glob("*.md")), ids=lambda path: path.stem)
def test_runbooks_say_what_how_and_what_to_do(path: Path) -> None:
    text = path.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    assert headings == [path.stem, "What it means", "How to check", "What to do"]
    names = set(re.findall(r"\bannals_[a-z_]+", text)) - {"annals_app", "annals_owner"}
    assert names <= set(exported())
    for target in re.findall(r"\]\((\w+\.md)\)", text):
        assert (RUNBOOKS / target).is_file()


def promtool(tmp_path: Path, groups: list[Any]) -> Any:
    rules_path, test_path = tmp_path / "rules.yaml", tmp_path / "test.yaml"
    rules_path.write_text(yaml.safe_dump({"groups": groups}, allow_unicode=True))
    test = (ROOT / "tests/helm/rules_test.yaml").read_text()
    test_path.write_text(test.replace("RULES", str(rules_path)))
    return rules_path, test_path


def rule_groups() -> list[Any]:
    [item] = of_kind(rendered("production"), "PrometheusRule")
    # The tests are of an installation called annals in the namespace n.
    text = json.dumps(item["spec"]["groups"]).replace(NAMESPACE, "n")
    return list(json.loads(text))


def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    rules_path, _ = promtool(tmp_path, rule_groups())
    done = tool("promtool", "check", "rules", "--lint-fatal", str(rules_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    _, test_path = promtool(tmp_path, rule_groups())
    done = tool("promtool", "test", "rules", str(test_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested() -> None:
    tested = yaml.safe_load((ROOT / "tests/helm/rules_test.yaml").read_text())["tests"]
    firing = {
        case["alertname"]
        for test in tested
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert firing == {rule["alert"] for rule in alerts()}


def test_an_alert_that_lost_its_threshold_is_seen(tmp_path: Path) -> None:
    groups = json.loads(json.dumps(rule_groups()).replace("> 120", "> 12000"))
    _, test_path = promtool(tmp_path, groups)
    done = tool("promtool", "test", "rules", str(test_path))
    assert done.returncode != 0
    assert "AnnalsIndexLag" in done.stdout + done.stderr


def test_the_reader_of_promql_finds_every_metric() -> None:
    expression = (
        'sum by (job) (rate(a_total{x="b_total{",y!~"c"}[5m] offset 1h)) / on (job) '
        "group_left (z) d_count > 14.4 * 1e3 and histogram_quantile(0.9, e_bucket) unless f:g"
    )
    assert selectors(expression) == [
        Selector("a_total", frozenset({"x", "y"})),
        *(Selector(name, frozenset()) for name in ("d_count", "e_bucket", "f:g")),
    ]
    assert grouped_labels(expression) == {"job", "z"}


def test_a_metric_or_label_nobody_exports_is_seen() -> None:
    names = exported()
    assert unknown("sum(annals_gone_total)", names) == ["annals_gone_total"]
    assert unknown('annals_rpc_calls_total{colour="red"}', names) == ["colour"]
    assert unknown("sum by (colour) (annals_watches)", names) == ["colour"]
