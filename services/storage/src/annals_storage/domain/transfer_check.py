"""Whether the lines of a conversation agree with each other."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from annals_storage.domain.branches import OPEN_SEQ, Part, shared_parts
from annals_storage.domain.embedding_bytes import FLOAT16, from_bytes
from annals_storage.domain.events import TRUNK, EventType
from annals_storage.domain.relationships import NodeKind
from annals_storage.domain.transfer import Digest, Line, place_of
from annals_storage.domain.transfer_fields import LineInvalidError, is_uuid
from annals_storage.domain.transfer_history import (
    CountTokens,
    Reference,
    check_event,
    check_observation,
    check_tool_input,
)
from annals_storage.domain.transfer_lines import Kind, Values

LENGTH_TOLERANCE = 0.05
_COUNTED = ("event_count", "message_count", "token_count", "memory_count", "branch_count")


@dataclass(slots=True)
class Section:
    """One conversation of a file, line after line. Raises LineInvalidError.

    `references`: what its events name; whoever stores them looks it up and empties the list.
    """

    tenant_id: UUID
    embedding_dimensions: int
    count_tokens: CountTokens
    digest: Digest = field(default_factory=Digest)
    conversation: Values = field(default_factory=dict)
    ended: bool = False
    references: list[Reference] = field(default_factory=list)
    _header: Values = field(default_factory=dict)
    _place: int = -1
    _seq: int = 0
    _event: Values = field(default_factory=dict)
    _observed: int = 0
    _line: int = 0
    _has_own_event: bool = False
    _has_lost_call: bool = False
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
        self._line = line.number
        check_tool_input(line.values)
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
        if kind is not Kind.OBSERVATION:
            self._check_observed()
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
        self._check_fork_seq(self._views[parent], fork_seq)
        shared = shared_parts(self._views[parent], fork_seq)
        arrays = [[getattr(part, name) for part in shared] for name in Part.__slots__]
        if arrays != [values["view_branches"], values["view_after"], values["view_until"]]:
            raise LineInvalidError("the view does not follow from parent_branch and fork_seq")
        self._views[number] = [*shared, Part(number, fork_seq, OPEN_SEQ)]
        self._sums["branch_count"] += 1

    def _check_fork_seq(self, parent: list[Part], fork_seq: int) -> None:
        in_view = any(part.after_seq < fork_seq <= part.until_seq for part in parent)
        if fork_seq >= self.conversation["next_seq"] or (fork_seq and not in_view):
            raise LineInvalidError("fork_seq must be 0 or of an event that parent_branch shows")

    def _take_event(self, values: Values) -> None:
        if values["seq"] != self._seq + 1:
            raise LineInvalidError(f"seq must be {self._seq + 1}: events have no gaps")
        view = self._views.get(values["branch"])
        if view is None or values["seq"] <= view[-1].after_seq:
            raise LineInvalidError(f"branch {values['branch']} does not exist at this seq")
        check_event(values, self.count_tokens)
        self._check_origin(values)
        self._refer(values)
        self._seq, self._event, self._observed = values["seq"], values, 0
        if "deleted_at" not in values and "erased_at" not in values:
            self._sums["event_count"] += 1
            self._sums["message_count"] += values["type"] == EventType.MESSAGE
            self._sums["token_count"] += values["token_count"]

    def _check_origin(self, values: Values) -> None:
        """Copies are the first events of a fork, and nothing else is a copy."""
        if "origin_event_id" not in values:
            self._has_own_event |= "erased_at" not in values
        elif "forked_from_conversation_id" not in self.conversation or self._has_own_event:
            raise LineInvalidError("origin_event_id belongs to the first events of a fork only")

    def _refer(self, values: Values) -> None:
        """Note what an event, or a former version of one, names."""
        if "erased_at" in values:
            self._has_lost_call |= values["type"] == EventType.TOOL_CALL
            return
        names = {"parent_event_id": values.get("parent_event_id")}
        # A fork copies results whose call it does not copy; an erased call lost its id.
        if (
            values["type"] == EventType.TOOL_RESULT
            and "origin_event_id" not in values
            and not self._has_lost_call
        ):
            names["tool_call_id"] = values["tool_call_id"]
        if any(names.values()):
            self.references.append(Reference(self._line, values["seq"], **names))

    def _check_observed(self) -> None:
        """Every version has its observation; erasing takes them all away."""
        event, self._event = self._event, {}
        if event and "erased_at" not in event and self._observed != event["version"]:
            raise LineInvalidError(
                f"before it, the observation of version {self._observed + 1} of event "
                f"{event['event_id']} is missing"
            )

    def _take_observation(self, values: Values) -> None:
        if values["event_id"] != self._event.get("event_id"):
            raise LineInvalidError("an observation stands behind its event")
        if "erased_at" in self._event:
            raise LineInvalidError("an erased event has no observations; leave it out")
        if values["version"] != self._observed + 1 or values["version"] > self._event["version"]:
            raise LineInvalidError("versions must rise by one, from 1 up to that of the event")
        self._observed = values["version"]
        check_observation(self._event, values, self.count_tokens)
        if (payload := values.get("payload")) is not None:
            self._refer_formerly(payload)

    def _refer_formerly(self, payload: Values) -> None:
        if payload["type"] == EventType.TOOL_CALL:
            self._has_lost_call |= payload["tool_call_id"] != self._event["tool_call_id"]
        if (parent := payload.get("parent_event_id")) is not None:
            self.references.append(Reference(self._line, payload["seq"], parent))

    def _take_memory(self, values: Values) -> None:
        if not values["content"].strip():
            raise LineInvalidError("content must contain a word")
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


def check_embedding(values: Values, dimensions: int) -> None:
    """Judge the embedding of a memory: only callers' own are in a file, float16 and of length 1."""
    given = "embedding" in values
    if given != values["caller_embedding"] or ("embedding_model" in values and not given):
        raise LineInvalidError("embedding and embedding_model belong to caller_embedding")
    if not given:
        return
    raw = base64.b64decode(values["embedding"])
    if len(raw) != dimensions * FLOAT16.itemsize:
        raise LineInvalidError(
            f"embedding has {len(raw) / FLOAT16.itemsize:g} dimensions, but this server's "
            f"model has {dimensions}"
        )
    length = float(np.linalg.norm(from_bytes(raw)))
    if not abs(length - 1) <= LENGTH_TOLERANCE:
        raise LineInvalidError("embedding must be of length 1")
