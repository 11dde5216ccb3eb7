"""What PromQL expressions name: metrics, and the labels asked of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
LABEL_LIST = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
RANGE = re.compile(r"\[[^\]]*\]")
OFFSET = re.compile(r"\boffset\s+\w+")
NUMBER = re.compile(r"\b\d[\w.]*")
NAME = re.compile(r"[a-zA-Z_:][\w:]*")
MATCHER = re.compile(r"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)")
WORDS = frozenset({"and", "or", "unless", "bool", "atan2", "inf", "nan"})


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric, and the labels of its matchers."""

    metric: str
    labels: frozenset[str]


def selectors(expression: str) -> list[Selector]:
    """Every metric an expression selects."""
    bare = expression
    for pattern, stead in ((STRING, '""'), (RANGE, ""), (OFFSET, ""), (LABEL_LIST, "")):
        bare = pattern.sub(stead, bare)
    return list(_selectors(NUMBER.sub("0", bare)))


def grouped_labels(expression: str) -> frozenset[str]:
    """The labels of every `by (…)` and its like."""
    found = LABEL_LIST.findall(STRING.sub('""', expression))
    return frozenset(name for _, names in found for name in NAME.findall(names))


def _selectors(bare: str) -> Iterator[Selector]:
    position = 0
    while match := NAME.search(bare, position):
        position = match.end()
        rest = bare[position:].lstrip()
        if match[0] in WORDS or rest.startswith("("):
            continue
        matchers = ""
        if rest.startswith("{"):
            matchers = rest[: rest.index("}") + 1]
            position = bare.index("}", position) + 1
        yield Selector(match[0], frozenset(MATCHER.findall(matchers)))
