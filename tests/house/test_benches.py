"""Benchmarks are not run here, but nothing they are made of may go without their being mended."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCH.glob("*.py")))
def test_imports(name: str) -> None:
    import_module(f"tests.bench.{name}")
