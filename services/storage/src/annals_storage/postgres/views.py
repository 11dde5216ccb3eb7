"""What a branch shows, inside a transaction."""

from __future__ import annotations

from uuid import UUID

from annals_common.errors import ResourceNotFoundError
from annals_storage.domain.branches import Part
from annals_storage.postgres.database import Params, Transaction, sql


async def view_of(transaction: Transaction, ids: Params, branch: int) -> list[Part]:
    """Return the parts of a branch's view, by seq. `ids`: tenant_id and conversation_id.

    Raises ResourceNotFoundError.
    """
    rows = await transaction.run(sql("get_branch_view"), {**ids, "branch": branch})
    if not rows:
        raise ResourceNotFoundError("branch", str(branch))
    return [Part(**row) for row in rows]


async def seq_in_view(
    transaction: Transaction, ids: Params, view: list[Part], event_id: UUID
) -> int:
    """Return the position of an event of the view. Raises ResourceNotFoundError."""
    for place in await transaction.run(sql("get_event_place"), {**ids, "event_id": event_id}):
        if any(part.holds(**place) for part in view):
            seq: int = place["seq"]
            return seq
    raise ResourceNotFoundError("event", str(event_id))


def part_arrays(parts: list[Part]) -> Params:
    """Return the parts as the arrays `branches`, `afters`, `untils`."""
    return {
        "branches": [part.branch for part in parts],
        "afters": [part.after_seq for part in parts],
        "untils": [part.until_seq for part in parts],
    }
