"""What the chart holds a copy of, because Helm reads no file outside of it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_chart_makes_the_roles_that_annals_storage_prints() -> None:
    copied = ROOT / "deploy/helm/annals/evaluation/roles.sql"
    printed = ROOT / "services/storage/src/annals_storage/postgres/sql/roles.sql"

    assert copied.read_text() == printed.read_text(), f"copy {printed} to {copied}"
