"""Reads JSON values one after the other from a file that need not fit in memory.

Takes one value, several values (JSON Lines) and arrays, whose elements come one at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TextIO

from annals_client.values import whole_number

CHUNK_CHARS = 256 * 1024
_SPACE = " \t\r\n\ufeff"
_AFTER_NUMBER = frozenset(" \t\r\n,]}")


class JsonReader:
    """Decodes from a text file. Raises ValueError where the text is not JSON."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text, self._at = "", 0
        self._decoder = json.JSONDecoder(parse_int=whole_number)
        self.consumed_chars = 0

    def peek(self) -> str:
        """Return the next character that is not space; "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._advance(self._at + 1)
            if self._at < len(self._text) or not self._more(CHUNK_CHARS):
                return self._text[self._at : self._at + 1]

    def value(self) -> Any:
        """Decode one value. Reads ever larger chunks until it is whole."""
        self.peek()
        chars = CHUNK_CHARS
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                self._more_or_raise(chars, error)
            else:
                if self._ends(value, end) or not self._more(chars):
                    self._advance(end)
                    return value
            chars *= 2

    def elements(self) -> Iterator[Any]:
        """Decode the elements of the array that begins here, one at a time."""
        self._take("[")
        if self.peek() == "]":
            self._take("]")
            return
        yield self.value()
        while self.peek() == ",":
            self._take(",")
            yield self.value()
        self._take("]")

    def _ends(self, value: Any, end: int) -> bool:
        """Tell whether a value is whole: a number may go on in the next chunk."""
        is_number = isinstance(value, int | float)
        return not is_number or self._text[end : end + 1] in _AFTER_NUMBER

    def _take(self, char: str) -> None:
        if self.peek() != char:
            raise ValueError(f"expected {char!r} at character {self.consumed_chars}")
        self._advance(self._at + 1)

    def _advance(self, at: int) -> None:
        self.consumed_chars += at - self._at
        self._at = at

    def _more_or_raise(self, chars: int, error: json.JSONDecodeError) -> None:
        if not self._more(chars):
            place = self.consumed_chars + error.pos - self._at
            raise ValueError(f"{error.msg} at character {place}") from None

    def _more(self, chars: int) -> bool:
        chunk = self._file.read(chars)
        self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)
