"""JSON, lines of JSON, and what Python prints of its lists and dicts."""

from __future__ import annotations

import re

from annals_storage.domain.structure.seams import Seams

_TOKEN = re.compile(
    r"""
      (?P<plain>(?: [\s:]++ | -?\d[-+.\deE]*+ | true | false | null | True | False | None
                  | "(?: [^"\\]++ | \\. )*+" | '(?: [^'\\]++ | \\. )*+' )++)
    | (?P<comma>,\s*+)
    | (?P<open>[\[{])
    | (?P<close>[\]}])
    | (?P<broken>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""Possessive throughout: no character is looked at twice."""

_CLOSES = {"]": "[", "}": "{"}
_BEGINS = re.compile(r"\s*[\[{]")


def data_seams(text: str, start: int) -> Seams | None:
    """Return seams between elements, ranked by their depth; None if the text is not such data."""
    if not _BEGINS.match(text, start):
        return None
    return _Elements().of(text, start)


class _Elements:
    def __init__(self) -> None:
        self._seams = Seams(of_records=True)
        self._open: list[str] = []

    def of(self, text: str, start: int) -> Seams | None:
        for token in _TOKEN.finditer(text, start):
            if not self._take(token, start):
                return None
        return None if self._open else self._seams

    def _take(self, token: re.Match[str], start: int) -> bool:
        """Return whether the text is sound so far."""
        match token.lastgroup:
            case "plain":
                return bool(self._open) or token.group().isspace()
            case "comma":
                self._seams.add(token.end(), len(self._open))
                return bool(self._open)
            case "open":
                if not self._open and token.start() > start:
                    self._seams.add(token.start(), 0)
                self._open.append(token.group())
                return True
            case "close":
                return bool(self._open) and self._open.pop() == _CLOSES[token.group()]
        return False
