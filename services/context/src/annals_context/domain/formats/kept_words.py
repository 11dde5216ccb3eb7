"""Parts of a message, kept without the words that the event holds anyway.

In place of its words a part has their length in characters. A digest of all the words tells whether
they are still what they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

SEPARATOR = "\n"
"""Between the words of two parts."""
_DIGEST = "words"
_DIGEST_CHARS = 16
Members = Mapping[str, object]
_Change = Callable[[list[object]], list[object] | None]


def cut(kept: Members, words: str) -> dict[str, object]:
    """Return what is kept with lengths for words; `words` are those of all parts, a line each."""
    lengths = _changed(kept, lambda content: _lengths(content, words))
    return {**kept} if lengths == kept else lengths | {_DIGEST: _digest(words)}


def filled(kept: Members, words: str) -> Members:
    """Return what was kept with the words again; without parts when these were edited since."""
    if _DIGEST not in kept:
        return kept
    rest = {name: member for name, member in kept.items() if name != _DIGEST}
    is_same = kept[_DIGEST] == _digest(words)
    return _changed(rest, lambda content: _texts(content, words) if is_same else None)


def _changed(kept: Members, change: _Change) -> dict[str, object]:
    """Return what is kept with its `content` changed, and that of its `message`."""
    changed = {**kept}
    if isinstance(content := changed.get("content"), list):
        parts = change(content)
        changed = {**changed, "content": parts} if parts is not None else _without(changed)
    if isinstance(message := changed.get("message"), dict):
        changed["message"] = _changed(message, change)
    return changed


def _without(kept: Members) -> dict[str, object]:
    return {name: member for name, member in kept.items() if name != "content"}


def _lengths(parts: list[object], words: str) -> list[object]:
    shown: list[object] = []
    place = 0
    for part in parts:
        text = _text(part)
        if isinstance(part, dict) and isinstance(text, str) and words.startswith(text, place):
            shown.append({**part, "text": len(text)})
            place += len(text) + len(SEPARATOR)
        else:
            shown.append(part)
    return shown


def _texts(parts: list[object], words: str) -> list[object]:
    shown: list[object] = []
    place = 0
    for part in parts:
        length = _text(part)
        if isinstance(part, dict) and type(length) is int:
            shown.append({**part, "text": words[place : place + length]})
            place += length + len(SEPARATOR)
        else:
            shown.append(part)
    return shown


def _text(part: object) -> object:
    """Return the text of a part, unless a model thought it: that is no words of the event."""
    return part.get("text") if isinstance(part, dict) and not part.get("thought") else None


def _digest(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:_DIGEST_CHARS]
