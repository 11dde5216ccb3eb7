"""The words of an event, as the model knows them and as the service sends them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import message, system, tool_call, tool_result
from annals_storage.embedding.tokens import TiktokenCounter

TOOL = "lookup"
_COUNTER = TiktokenCounter()


@dataclass(frozen=True, slots=True)
class Said:
    """What an event says. `kind`: the name of its body; `text`: its own words."""

    kind: str
    text: str
    call_id: str = ""

    @property
    def is_message(self) -> bool:
        return self.kind == "message"

    @property
    def is_call(self) -> bool:
        return self.kind == "tool_call"

    @property
    def is_result(self) -> bool:
        return self.kind == "tool_result"

    @property
    def token_count(self) -> int:
        words = json.dumps({"words": self.text}) if self.is_call else self.text
        return _COUNTER.count([words])[0]

    def erased(self) -> Said:
        return replace(self, text="", call_id="")

    def new_event(self) -> pb.NewEvent:
        """As it is sent."""
        match self.kind:
            case "message":
                return message("user", self.text)
            case "tool_call":
                return tool_call(self.call_id, TOOL, json.dumps({"words": self.text}))
            case "tool_result":
                return tool_result(self.call_id, self.text)
            case _:
                return system(self.text)


def said_of(event: res.Event) -> Said:
    """What a stored event says."""
    kind = event.WhichOneof("body")
    match kind:
        case "tool_call":
            words = json.loads(event.tool_call.input_json or "{}").get("words", "")
            return Said(kind, words, event.tool_call.tool_call_id)
        case "tool_result":
            return Said(kind, event.tool_result.result, event.tool_result.tool_call_id)
        case "message":
            return Said(kind, event.message.content)
        case "system":
            return Said(kind, event.system.content)
    raise AssertionError(f"an event without a body the model knows: {event}")
