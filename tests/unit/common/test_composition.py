"""A service is made of parts: every method is one part's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from annals_common.composition import compose


def refuse(_: object) -> str:
    raise NotImplementedError


Servicer = type("Servicer", (), {"Read": refuse, "Write": refuse})
"""As generated: every method is there, and refuses."""
READS = SimpleNamespace(Read=lambda: "read")
WRITES = SimpleNamespace(Write=lambda: "written")
BOTH = SimpleNamespace(Read=lambda: "read", Write=lambda: "written")


def test_methods_are_those_of_the_parts() -> None:
    servicer = compose(Servicer, READS, WRITES)

    assert (servicer.Read(), servicer.Write()) == ("read", "written")


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ([], r"Servicer\.Read is implemented by 0 parts"),
        ([READS], r"Servicer\.Write is implemented by 0 parts"),
        ([BOTH, WRITES], r"Servicer\.Write is implemented by 2 parts"),
    ],
    ids=["nobody's", "not every one's", "several parts'"],
)
def test_every_method_is_one_part_s(parts: list[object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        compose(Servicer, *parts)
