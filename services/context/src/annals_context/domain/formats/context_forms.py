"""What contexts of each provider are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from annals_context.domain.events import Event
from annals_context.domain.formats import openai_responses
from annals_context.domain.formats.anthropic_messages import AnthropicContextWriter
from annals_context.domain.formats.degrading import single
from annals_context.domain.formats.gemini_contents import GeminiWriter
from annals_context.domain.formats.rendering import Rendered
from annals_context.domain.formats.turn_writing import Block, TurnWriter
from annals_context.domain.formats.turns import Dialogue, in_turns, opened
from annals_context.domain.pairing import Unit
from annals_context.domain.snippets import ELLIPSIS


@dataclass(frozen=True, slots=True)
class TurnsForm:
    """Turns of two speakers; the prompts stand apart.

    A conversation that the assistant begins, and one of prompts alone, opens with an ellipsis of
    the user: no event that could stand there instead is shorter.
    """

    writer: Callable[[Dialogue], TurnWriter]
    brackets: tuple[str, ...]

    def prompt(self, words: str) -> Block:
        """Return a block."""
        return self.writer(in_turns((), ())).text(words)

    def unit(self, unit: Unit) -> list[Block]:
        """Return the prompts or the turns of a unit."""
        writer = self.writer(in_turns((), [unit]))
        written = [*writer.prompts(), *map(writer.turn, writer.source.turns)]
        is_blank = any(repair.kind == "message_empty" for repair in writer.repairs)
        return [] if is_blank else written

    def compose(self, prompts: Sequence[Event], units: Sequence[Unit]) -> Rendered:
        """Return the payload."""
        return self.writer(opened(in_turns(prompts, units), ELLIPSIS)).rendered()


class ItemsForm:
    """The items of OpenAI's responses; prompts are the first ones."""

    brackets = ('[{"', "}]")

    def prompt(self, words: str) -> Block:
        """Return an item."""
        return {"type": "message", "role": "system", "content": words}

    def unit(self, unit: Unit) -> list[Block]:
        """Return the items of a unit."""
        return openai_responses.written([unit]).items

    def compose(self, prompts: Sequence[Event], units: Sequence[Unit]) -> Rendered:
        """Return the payload."""
        return openai_responses.write([*map(single, prompts), *units])


ANTHROPIC = TurnsForm(AnthropicContextWriter, ('{"system":[{"', '}],"messages":[{"', "}]}"))
GEMINI = TurnsForm(GeminiWriter, ('{"systemInstruction":{"parts":[{"', '}]},"contents":[{"', "}]}"))
RESPONSES = ItemsForm()
