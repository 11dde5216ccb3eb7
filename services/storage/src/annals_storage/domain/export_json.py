"""One JSON document."""

from __future__ import annotations

import json
from typing import Any

from annals_storage.domain.events import Event
from annals_storage.domain.export_formats import Values
from annals_storage.domain.transfer import event_values

_INTERNAL = frozenset({"request_id", "creation_hash", "next_seq", "payload_hash", "embedding"})


class JsonWriter:
    """An object with `conversation`, `branch`, `events` and `memories`, indented."""

    def __init__(self) -> None:
        self._events = self._memories = 0

    def begin(self, conversation: Values, branch: int) -> str:
        """Return the beginning, up to the list of events."""
        return (
            f'{{\n  "conversation": {_indented(_public(conversation), 2)},\n'
            f'  "branch": {branch},\n  "events": ['
        )

    def event(self, event: Event) -> str:
        """Return an item of the list of events."""
        self._events += 1
        return self._item(event_values(event), first=self._events == 1)

    def memory(self, memory: Values) -> str:
        """Return an item of the list of memories."""
        self._memories += 1
        between = "" if self._memories > 1 else self._between()
        return between + self._item(_public(memory), first=self._memories == 1)

    def end(self) -> str:
        """Return the end of the document."""
        between = "" if self._memories else self._between()
        closing = "\n  ]" if self._memories else "]"
        return f"{between}{closing}\n}}\n"

    def _between(self) -> str:
        closing = "\n  ]" if self._events else "]"
        return f'{closing},\n  "memories": ['

    @staticmethod
    def _item(value: Any, *, first: bool) -> str:
        return f"{'' if first else ','}\n    {_indented(value, 4)}"


def _public(values: Values) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in _INTERNAL}


def _indented(value: Any, spaces: int) -> str:
    written = json.dumps(value, ensure_ascii=False, indent=2)
    return written.replace("\n", "\n" + " " * spaces)
