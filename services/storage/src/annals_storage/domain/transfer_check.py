"""Whether the lines of a conversation agree with each other."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from annals_storage.domain.branches import OPEN_SEQ, Part, shared_parts
from annals_storage.domain.events import TRUNK, EventType
from annals_storage.domain.relationships import NodeKind
from annals_storage.domain.transfer import Digest, Line, place_of
from annals_storage.domain.transfer_fields import LineInvalidError, is_uuid
from annals_storage.domain.transfer_lines import Kind, Values

_REQUIRED = {
    EventType.MESSAGE: ("role", "content"),
    EventType.TOOL_CALL: ("tool_call_id", "tool_name", "tool_input"),
    EventType.TOOL_RESULT: ("tool_call_id", "tool_result"),
    EventType.SYSTEM: ("content",),
    EventType.ERROR: ("error_type", "error_message"),
}
_ALLOWED = {
    EventType.MESSAGE: {"role", "content", "author_name"},
    EventType.TOOL_CALL: {"tool_call_id", "tool_name", "tool_input"},
    EventType.TOOL_RESULT: {"tool_call_id", "tool_name", "tool_result"},
    EventType.SYSTEM: {"content"},
    EventType.ERROR: {"error_type", "error_message"},
}
_BODY = frozenset().union(*_ALLOWED.values())
FLOAT16_BYTES = 2
LENGTH_TOLERANCE = 0.05
_COUNTED = ("event_count", "message_count", "token_count", "memory_count", "branch_count")


@dataclass(slots=True)
class Section:
    """One conversation of a file, line after line. Raises LineInvalidError."""

    tenant_id: UUID
    embedding_dimensions: int
    digest: Digest = field(default_factory=Digest)
    conversation: Values = field(default_factory=dict)
    ended: bool = False
    _header: Values = field(default_factory=dict)
    _place: int = -1
    _seq: int = 0
    _event: Values = field(default_factory=dict)
    _observed: int = 0
    _sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    _views: dict[int, list[Part]] = field(
        default_factory=lambda: {TRUNK: [Part(TRUNK, 0, OPEN_SEQ)]}
    )

    @property
    def conversation_id(self) -> UUID:
        """Return the conversation's id; known from the header on."""
        return UUID(self._header["conversation_id"])

    def take(self, line: Line) -> None:
        """Judge the next line and count it in."""
        self._check_place(line.kind)
        judges = {
            Kind.HEADER: self._take_header,
            Kind.CONVERSATION: self._take_conversation,
            Kind.BRANCH: self._take_branch,
            Kind.EVENT: self._take_event,
            Kind.OBSERVATION: self._take_observation,
            Kind.MEMORY: self._take_memory,
            Kind.RELATIONSHIP: self._take_relationship,
            Kind.END: self._take_end,
        }
        if (judge := judges.get(line.kind)) is not None:
            judge(line.values)
        if line.kind is not Kind.END:
            self.digest.take(line.kind, line.encoded())

    def _check_place(self, kind: Kind) -> None:
        place = place_of(kind)
        single = kind in {Kind.HEADER, Kind.CONVERSATION, Kind.END}
        if place < self._place or (single and place == self._place):
            raise LineInvalidError(f"a line {kind} cannot stand here")
        if self._place < place_of(Kind.HEADER) and kind is not Kind.HEADER:
            raise LineInvalidError("a conversation begins with a line header")
        if kind is not Kind.HEADER and kind is not Kind.CONVERSATION and not self.conversation:
            raise LineInvalidError("the line conversation is missing")
        self._place = place

    def _take_header(self, values: Values) -> None:
        if values["tenant_id"] != str(self.tenant_id):
            raise LineInvalidError(
                f"is of another tenant, {values['tenant_id']}; export it from your own"
            )
        self._header = values

    def _take_conversation(self, values: Values) -> None:
        if values["conversation_id"] != self._header["conversation_id"]:
            raise LineInvalidError("conversation_id is not that of the header")
        if "user_id" in values and "session_id" in values:
            raise LineInvalidError("has both user_id and session_id; at most one is allowed")
        self.conversation = values

    def _take_branch(self, values: Values) -> None:
        number, parent, fork_seq = values["branch"], values["parent_branch"], values["fork_seq"]
        if number in self._views or number < max(self._views):
            raise LineInvalidError("branches must stand in order of their numbers")
        if parent not in self._views:
            raise LineInvalidError(f"parent_branch {parent} is not a branch before it")
        shared = shared_parts(self._views[parent], fork_seq)
        arrays = [[getattr(part, name) for part in shared] for name in Part.__slots__]
        if arrays != [values["view_branches"], values["view_after"], values["view_until"]]:
            raise LineInvalidError("the view does not follow from parent_branch and fork_seq")
        self._views[number] = [*shared, Part(number, fork_seq, OPEN_SEQ)]
        self._sums["branch_count"] += 1

    def _take_event(self, values: Values) -> None:
        if values["seq"] != self._seq + 1:
            raise LineInvalidError(f"seq must be {self._seq + 1}: events have no gaps")
        view = self._views.get(values["branch"])
        if view is None or values["seq"] <= view[-1].after_seq:
            raise LineInvalidError(f"branch {values['branch']} does not exist at this seq")
        check_body(values)
        self._seq, self._event, self._observed = values["seq"], values, 0
        if "deleted_at" not in values and "erased_at" not in values:
            self._sums["event_count"] += 1
            self._sums["message_count"] += values["type"] == EventType.MESSAGE
            self._sums["token_count"] += values["token_count"]

    def _take_observation(self, values: Values) -> None:
        if values["event_id"] != self._event.get("event_id"):
            raise LineInvalidError("an observation stands behind its event")
        if not self._observed < values["version"] <= self._event["version"]:
            raise LineInvalidError("versions must rise, up to that of the event")
        self._observed = values["version"]
        if (payload := values.get("payload")) is not None:
            self._check_payload(values, payload)

    def _check_payload(self, values: Values, payload: Values) -> None:
        if values["version"] == self._event["version"]:
            raise LineInvalidError("payload: what an event is now stands in the event itself")
        for name in ("event_id", "seq", "branch", "type"):
            if payload[name] != self._event[name]:
                raise LineInvalidError(f"payload: {name} must be that of the event")
        check_body(payload)

    def _take_memory(self, values: Values) -> None:
        check_embedding(values, self.embedding_dimensions)
        self._sums["memory_count"] += 1

    def _take_relationship(self, values: Values) -> None:
        ends = [(values[f"{end}_kind"], values[f"{end}_id"]) for end in ("source", "target")]
        for kind, node_id in ends:
            if kind != NodeKind.EXTERNAL and not is_uuid(node_id):
                raise LineInvalidError(f"the id of a {kind} must be a UUID in lower case")
        if ends[0] == ends[1]:
            raise LineInvalidError("joins something with itself")

    def _take_end(self, values: Values) -> None:
        self._check_counts(values)
        told = values.get("sha256")
        if told is not None and told != self.digest.hexdigest():
            raise LineInvalidError("sha256 is not that of the lines: the file was changed")
        if self.conversation["next_seq"] != self._seq + 1:
            raise LineInvalidError(f"next_seq of the conversation must be {self._seq + 1}")
        if self.conversation["current_branch"] not in self._views:
            raise LineInvalidError("current_branch of the conversation does not exist")
        sums = {**self._sums, "branch_count": self._sums["branch_count"] + 1}
        for name, value in sums.items():
            if self.conversation[name] != value:
                raise LineInvalidError(f"{name} of the conversation must be {value}")
        self.ended = True

    def _check_counts(self, values: Values) -> None:
        if values["lines"] != self.digest.lines:
            raise LineInvalidError(
                "does not count the lines before it; the file was cut or changed"
            )


def check_body(values: Values) -> None:
    """Judge the members that depend on the type. An erased event has none of them."""
    kind = EventType(values["type"])
    present = {name for name in _BODY if name in values}
    if "erased_at" in values:
        if present:
            raise LineInvalidError(f"{min(present)}: an erased event has no words")
        return
    for name in _REQUIRED[kind]:
        if name not in present:
            raise LineInvalidError(f"{name} is missing in a {kind}")
    if wrong := present - _ALLOWED[kind]:
        raise LineInvalidError(f"{min(wrong)} does not belong to a {kind}")


def check_embedding(values: Values, dimensions: int) -> None:
    """Judge the embedding of a memory: only callers' own are in a file, float16 and of length 1."""
    given = "embedding" in values
    if given != values["caller_embedding"] or ("embedding_model" in values and not given):
        raise LineInvalidError("embedding and embedding_model belong to caller_embedding")
    if not given:
        return
    raw = base64.b64decode(values["embedding"])
    if len(raw) != dimensions * FLOAT16_BYTES:
        raise LineInvalidError(
            f"embedding has {len(raw) / FLOAT16_BYTES:g} dimensions, but this server's "
            f"model has {dimensions}"
        )
    length = float(np.linalg.norm(np.frombuffer(raw, "<f2").astype(np.float64)))
    if not abs(length - 1) <= LENGTH_TOLERANCE:
        raise LineInvalidError("embedding must be of length 1")
