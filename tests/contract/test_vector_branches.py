"""What every vector engine must do: keep branches apart, and go on with points older than them."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.contract import vector_engines
from tests.contract.vector_points import chunk, found, memory

from annals_storage.domain.search import BranchPart, SearchScope
from annals_storage.ports.vectors import VectorIndex
from annals_storage.vectors import payload

TENANT = UUID(int=1)
ROOM = uuid4()
HEAD = 2**62


@pytest.fixture(params=vector_engines.ENGINES)
async def index(request, tmp_path):
    async with vector_engines.opened(request.param, tmp_path) as opened:
        yield opened


def event(branch: int, seq: int, *, current: bool = True):
    return chunk(TENANT, conversation_id=ROOM, branch=branch, seq=seq, current=current)


def room(**fields) -> SearchScope:
    return SearchScope(TENANT, conversation_ids=(ROOM,), **fields)


def ids_of(*points) -> set[UUID]:
    return {point.chunk_id for point in points}


async def test_what_is_not_in_view_is_left_out_unless_asked_for(index: VectorIndex):
    kept, abandoned = event(1, 1), event(1, 2, current=False)
    await index.upsert([kept, abandoned])

    assert await found(index, room()) == ids_of(kept)
    assert await found(index, room(all_branches=True)) == ids_of(kept, abandoned)
    assert await index.count_points(TENANT) == 2


async def test_a_view_is_any_of_its_parts(index: VectorIndex):
    trunk = [event(1, seq) for seq in range(1, 6)]
    second = [event(2, seq, current=False) for seq in range(6, 9)]
    third = [event(3, seq, current=False) for seq in range(9, 11)]
    await index.upsert([*trunk, *second, *third])
    view = (BranchPart(1, 0, 3), BranchPart(2, 3, 7), BranchPart(3, 8, HEAD))

    assert await found(index, room(view=view)) == ids_of(*trunk[:3], *second[:2], *third)


async def test_a_part_begins_after_its_first_seq_and_ends_with_its_last(index: VectorIndex):
    points = [event(2, seq) for seq in range(1, 6)]
    await index.upsert(points)

    assert await found(index, room(view=(BranchPart(2, 2, 4),))) == ids_of(*points[2:4])
    assert await found(index, room(view=(BranchPart(2, 5, 5),))) == set()
    assert await found(index, room(view=(BranchPart(1, 0, HEAD),))) == set()


async def test_other_conditions_hold_with_a_view(index: VectorIndex):
    here, elsewhere = event(1, 1), chunk(TENANT, seq=1)
    theirs = chunk(UUID(int=2), conversation_id=ROOM, seq=1)
    await index.upsert([here, elsewhere, theirs])
    view = (BranchPart(1, 0, HEAD),)

    assert await found(index, room(view=view)) == ids_of(here)
    assert await found(index, room(view=view, exclude_event_ids=(here.event_id,))) == set()


async def test_points_from_before_branches_are_of_the_trunk_and_in_view(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
):
    old = event(1, 5)
    encode = payload.encode
    later_fields = {payload.KIND, payload.BRANCH, payload.CURRENT}
    monkeypatch.setattr(
        payload,
        "encode",
        lambda point: {k: v for k, v in encode(point).items() if k not in later_fields},
    )
    await index.upsert([old])
    monkeypatch.undo()
    await index.upsert([memory(TENANT, conversation_id=ROOM)])

    for scope in (
        room(),
        room(all_branches=True),
        room(view=(BranchPart(1, 0, 5),)),
        room(view=(BranchPart(1, 0, 3), BranchPart(1, 4, HEAD), BranchPart(2, 5, HEAD))),
    ):
        assert await found(index, scope) == ids_of(old)
    for view in ((BranchPart(1, 0, 4),), (BranchPart(2, 0, HEAD),)):
        assert await found(index, room(view=view)) == set()


async def test_upsert_moves_an_event_out_of_view(index: VectorIndex):
    point = event(1, 1)
    await index.upsert([point])
    moved = chunk(
        TENANT, chunk_id=point.chunk_id, conversation_id=ROOM, event_id=point.event_id,
        current=False,
    )  # fmt: skip
    await index.upsert([moved])

    assert await found(index, room()) == set()
    assert await found(index, room(all_branches=True)) == ids_of(point)
