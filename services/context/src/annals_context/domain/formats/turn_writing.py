"""Turns of two speakers as blocks, which Anthropic calls content blocks and Google parts."""

from __future__ import annotations

from abc import ABC, abstractmethod

from annals_context.domain.events import Event, EventType
from annals_context.domain.formats.rendering import Rendered, call_ids
from annals_context.domain.formats.turns import EMPTY_TEXT, Dialogue, Said, Turn
from annals_context.domain.model import Repair

Block = dict[str, object]


class TurnWriter(ABC):
    """Writes the turns of a dialogue; `repairs` grows while it does."""

    def __init__(self, source: Dialogue) -> None:
        self.source = source
        self.repairs: list[Repair] = list(source.repairs)
        said = (one for turn in source.turns for one in turn.said)
        calls = [one.event for one in said if one.event and _is_call(one)]
        self.ids = call_ids(calls, self.call_id)

    def prompts(self) -> list[Block]:
        """Return the blocks of the prompts that precede everything."""
        return [block for event in self.source.prompts for block in self.content(event)]

    def blocks(self, turn: Turn) -> list[Block]:
        """Return what a turn holds: never nothing."""
        blocks = [block for said in turn.said for block in self._said(said)]
        if not blocks:
            blocks = [self.text(EMPTY_TEXT)]
            first = turn.said[0].event
            self.repairs.append(Repair("message_empty", "", first.event_id if first else ""))
        return blocks

    @abstractmethod
    def turn(self, turn: Turn) -> Block:
        """Return a turn."""

    @abstractmethod
    def rendered(self) -> Rendered:
        """Return the payload."""

    def _said(self, said: Said) -> list[Block]:
        if said.call is not None:
            return [self.result(said.call, said.event)]
        if said.text is not None:
            return [self.text(said.text)] if said.text.strip() else []
        if said.event is None:
            return []
        if _is_call(said):
            return [*self.before(said.event), self._call(said.event)]
        return self.content(said.event)

    def _call(self, call: Event) -> Block:
        name = self.tool_name(call)
        if name != call.tool_name:
            self.repairs.append(Repair("tool_name_changed", call.tool_call_id, call.event_id))
        return self.call(call, name)

    def call_id(self, tool_call_id: str) -> str:
        """Return an id of the characters that are allowed: here, all of them."""
        return tool_call_id

    @abstractmethod
    def tool_name(self, call: Event) -> str:
        """Return the name of a tool, of the characters that are allowed."""

    @abstractmethod
    def text(self, text: str) -> Block:
        """Return words, which are not blank."""

    @abstractmethod
    def content(self, event: Event) -> list[Block]:
        """Return what a message shows; nothing when it is blank."""

    @abstractmethod
    def before(self, call: Event) -> list[Block]:
        """Return what was kept of the turn before a call, such as thoughts."""

    @abstractmethod
    def call(self, call: Event, name: str) -> Block:
        """Return the call of a tool."""

    @abstractmethod
    def result(self, call: Event, result: Event | None) -> Block:
        """Return the result of a call; one that failed when there is none."""


def _is_call(said: Said) -> bool:
    return bool(said.call is None and said.event and said.event.type is EventType.TOOL_CALL)
