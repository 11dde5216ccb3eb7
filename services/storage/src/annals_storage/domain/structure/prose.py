"""Prose, Markdown and source code."""

from __future__ import annotations

import re

from annals_storage.domain.structure.seams import Seams

_HEADING, _PARAGRAPH, _INDENTED_PARAGRAPH, _LINE, _INDENTED_LINE = range(5)
_HEADING_LINE = re.compile(r"#{1,6}[ \t]")
_FENCE = re.compile(r"`{3,}|~{3,}")
_FENCE_INDENT = 3
_CLOSING = re.compile(r"[\])}]++[;,.]?\s*$|end\b")
_UNDERLINE = re.compile(r"[-=|:+ \t]{3,}+$")


def prose_seams(text: str, start: int) -> Seams:
    """Return seams before headings, around blocks of code, before paragraphs and lines.

    Code comes apart before what stands at the margin rather than before what is indented, and
    behind an empty line rather than elsewhere; all of it worse than the prose around it.
    """
    return _Lines(start).of(text)


class _Lines:
    def __init__(self, start: int) -> None:
        self._start = start
        self._seams = Seams()
        self._fence = ""
        self._code_start = 0
        self._after_blank = False

    def of(self, text: str) -> Seams:
        at = self._start
        while at < len(text):
            end = text.find("\n", at) + 1 or len(text)
            self._take(at, text[at:end])
            at = end
        if self._fence:
            self._seams.code.append((self._code_start, len(text)))
        return self._seams

    def _take(self, at: int, line: str) -> None:
        words = line.strip()
        if not words:
            self._after_blank = True
            return
        indent = len(line) - len(line.lstrip())
        if at > self._start and not (_UNDERLINE.match(words) and not self._after_blank):
            self._seams.add(at, self._rank(words, indent))
        self._after_blank = self._follow_fence(at, at + len(line), words, indent)

    def _rank(self, words: str, indent: int) -> int:
        if self._fence:
            ends_it = words.startswith(self._fence)
            return 1 + (_INDENTED_LINE if ends_it else self._line_rank(words, indent))
        if _HEADING_LINE.match(words) and not indent:
            return _HEADING
        if _FENCE.match(words):
            return _PARAGRAPH
        return self._line_rank(words, indent)

    def _line_rank(self, words: str, indent: int) -> int:
        if self._after_blank:
            return _INDENTED_PARAGRAPH if indent else _PARAGRAPH
        return _INDENTED_LINE if indent or _CLOSING.match(words) else _LINE

    def _follow_fence(self, at: int, end: int, words: str, indent: int) -> bool:
        """Open or close a block of code; return whether one was closed."""
        found = _FENCE.match(words) if indent <= _FENCE_INDENT else None
        if found is None:
            return False
        if not self._fence:
            self._fence, self._code_start = found.group(), at
            return False
        if words.startswith(self._fence) and not words.strip(self._fence[0]):
            self._seams.code.append((self._code_start, end))
            self._fence = ""
            return True
        return False
