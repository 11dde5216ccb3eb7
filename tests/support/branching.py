"""Branches by raw calls, and the view a naive model expects of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.raw import Raw

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res


async def revert(raw: Raw, conversation_id: str, event_id: str = "", **fields: Any) -> res.Branch:
    request = pb.RevertToEventRequest(conversation_id=conversation_id, event_id=event_id, **fields)
    branch: res.Branch = (await raw.call("RevertToEvent", request)).branch
    return branch


async def create_branch(
    raw: Raw, conversation_id: str, event_id: str = "", **fields: Any
) -> res.Branch:
    request = pb.CreateBranchRequest(conversation_id=conversation_id, event_id=event_id, **fields)
    branch: res.Branch = (await raw.call("CreateBranch", request)).branch
    return branch


async def select_branch(raw: Raw, conversation_id: str, branch: int) -> res.Branch:
    request = pb.SelectBranchRequest(conversation_id=conversation_id, branch=branch)
    selected: res.Branch = (await raw.call("SelectBranch", request)).branch
    return selected


async def branches_of(raw: Raw, conversation_id: str, page_size: int = 0) -> list[res.Branch]:
    """All of them, over all pages."""
    request = pb.ListBranchesRequest(conversation_id=conversation_id, page_size=page_size)
    found: list[res.Branch] = []
    while True:
        page = await raw.call("ListBranches", request)
        found += page.branches
        request.page_token = page.next_page_token
        if not request.page_token:
            return found


@dataclass(slots=True)
class NaiveConversation:
    """Branches as copies of lists: what their views must be."""

    lines: dict[int, list[int]] = field(default_factory=lambda: {1: []})
    current: int = 1
    last_seq: int = 0

    def append(self, count: int, branch: int = 0) -> None:
        for _ in range(count):
            self.last_seq += 1
            self.lines[branch or self.current].append(self.last_seq)

    def open(self, parent: int, fork_seq: int, *, select: bool) -> int:
        number = len(self.lines) + 1
        shared = [seq for seq in self.lines[parent or self.current] if seq <= fork_seq]
        self.lines[number] = shared
        if select:
            self.current = number
        return number
