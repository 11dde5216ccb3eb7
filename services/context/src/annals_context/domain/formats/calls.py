"""Calls that wait for their results while a payload is read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from annals_context.domain.events import Event

_MAX_BASE_CHARS = 240
"""Leaves room for a number within the 256 characters of an id."""


@dataclass(slots=True)
class OpenCalls:
    """Makes ids unique, and finds the call a result answers: the first that is still open.

    `reserved`: ids that stand in the payload further on.
    """

    reserved: set[str] = field(default_factory=set)
    _by_id: dict[str, deque[Event]] = field(default_factory=dict)
    _by_name: dict[str, deque[Event]] = field(default_factory=dict)
    _answered: set[str] = field(default_factory=set)
    _used: set[str] = field(default_factory=set)
    _next: dict[str, int] = field(default_factory=dict)

    def unique(self, given_id: str) -> str:
        """Return the id on its first use, else a numbered one that nobody uses afterwards."""
        chosen, number = given_id, self._next.get(given_id, 2)
        while chosen in self._used or (chosen != given_id and chosen in self.reserved):
            chosen, number = f"{given_id[:_MAX_BASE_CHARS]}~{number}", number + 1
        self._used.add(chosen)
        # Where to go on: an id that repeats thousands of times is not to be counted from the start.
        self._next[given_id] = number
        return chosen

    def open(self, given_id: str, call: Event) -> None:
        """Have a call, whose own id is unique, wait for its result."""
        self._by_id.setdefault(given_id, deque()).append(call)
        self._by_name.setdefault(call.tool_name, deque()).append(call)

    def answer(self, given_id: str) -> Event | None:
        """Return the call that a result of this id answers; None when none waits."""
        return self._first(self._by_id.get(given_id, deque()))

    def answer_by_name(self, tool_name: str) -> Event | None:
        """Return the call of this tool that a result without an id answers."""
        return self._first(self._by_name.get(tool_name, deque()))

    def _first(self, waiting: deque[Event]) -> Event | None:
        while waiting:
            call = waiting.popleft()
            if call.tool_call_id not in self._answered:
                self._answered.add(call.tool_call_id)
                return call
        return None
