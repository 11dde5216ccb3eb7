"""EventService: branches."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any
from uuid import UUID

from annals.storage.v1 import event_service_pb2 as pb
from annals_common.errors import PageTokenInvalidError, ResourceNotFoundError
from annals_common.paging import cut_page, decode_page_token, encode_page_token
from annals_common.validation import bounded, optional_uuid, page_size, require_uuid, text
from annals_storage.domain.branches import NewBranch
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.event_queries import MAX_BRANCH
from annals_storage.handlers.output import branch_message
from annals_storage.ports.conversations import BranchStore

MAX_DISPLAY_NAME_CHARS = 200
_NUMBER = re.compile(r"[0-9]{1,10}")


class BranchHandler:
    """Translates."""

    def __init__(self, branches: BranchStore) -> None:
        self._branches = branches

    async def RevertToEvent(
        self, request: pb.RevertToEventRequest, context: Any
    ) -> pb.RevertToEventResponse:
        tenant_id = data_tenant("RevertToEvent")
        opened = await self._branches.open(tenant_id, _new_branch(request, select=True))
        return pb.RevertToEventResponse(branch=branch_message(opened))

    async def CreateBranch(
        self, request: pb.CreateBranchRequest, context: Any
    ) -> pb.CreateBranchResponse:
        tenant_id = data_tenant("CreateBranch")
        bounded(request.parent_branch, "parent_branch", low=0, high=MAX_BRANCH)
        new = _new_branch(request, select=request.select, parent=request.parent_branch)
        opened = await self._branches.open(tenant_id, new)
        return pb.CreateBranchResponse(branch=branch_message(opened))

    async def ListBranches(
        self, request: pb.ListBranchesRequest, context: Any
    ) -> pb.ListBranchesResponse:
        tenant_id = data_tenant("ListBranches")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        limit, after = page_size(request.page_size), _after_branch(request, tenant_id)
        found = await self._branches.page(
            tenant_id, conversation_id, after_branch=after, limit=limit + 1
        )
        if not found and not after:
            raise ResourceNotFoundError("conversation", str(conversation_id))
        page, has_more = cut_page(found, limit)
        response = pb.ListBranchesResponse(branches=[branch_message(item) for item in page])
        if has_more:
            cursor = [str(page[-1].branch)]
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        return response

    async def SelectBranch(
        self, request: pb.SelectBranchRequest, context: Any
    ) -> pb.SelectBranchResponse:
        tenant_id = data_tenant("SelectBranch")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        bounded(request.branch, "branch", low=1, high=MAX_BRANCH)
        selected = await self._branches.select(tenant_id, conversation_id, request.branch)
        return pb.SelectBranchResponse(branch=branch_message(selected))


def _new_branch(
    request: pb.RevertToEventRequest | pb.CreateBranchRequest, *, select: bool, parent: int = 0
) -> NewBranch:
    said: dict[str, Any] = {
        "event_id": optional_uuid(request.event_id, "event_id"),
        "parent_branch": parent or None,
        "display_name": text(
            request.display_name, "display_name", max_chars=MAX_DISPLAY_NAME_CHARS
        ),
        "select": select,
    }
    return NewBranch(
        conversation_id=require_uuid(request.conversation_id, "conversation_id"),
        request_id=optional_uuid(request.request_id, "request_id"),
        request_hash=_hash(type(request).__name__, said),
        **said,
    )


def _hash(kind: str, said: dict[str, Any]) -> bytes:
    encoded = json.dumps([kind, said], sort_keys=True, default=str)
    return hashlib.sha256(encoded.encode()).digest()[:16]


def _after_branch(request: pb.ListBranchesRequest, tenant_id: UUID) -> int:
    cursor = decode_page_token(request, tenant_id, parts=1)
    if cursor is None:
        return 0
    if not _NUMBER.fullmatch(cursor[0]) or int(cursor[0]) > MAX_BRANCH:
        raise PageTokenInvalidError
    return int(cursor[0])
