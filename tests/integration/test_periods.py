"""ListPeriod."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, empty_conversation, ids
from tests.support.branching import revert
from tests.support.raw import failure
from tests.support.storage import RunningStorage, Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import system, user
from annals_common.principal import Principal, Scope, set_current_principal
from annals_storage.handlers.access import Access
from annals_storage.handlers.periods import PeriodHandler
from annals_storage.postgres.conversations import PostgresConversations
from annals_storage.postgres.events import PostgresEvents


async def hourly(tenant: Tenant, start: str, hours: int) -> str:
    """A conversation with one event an hour from a moment in UTC on; seq 1 is the first."""
    moment = datetime.fromisoformat(start).replace(tzinfo=UTC)
    events = []
    for hour in range(hours):
        events.append(user(f"hour {hour}"))
        events[-1].event_time.FromDatetime(moment + timedelta(hours=hour))
    return (await append(tenant.raw, "", *events)).conversation_id


async def listed_in(tenant: Tenant, room: str, period: str, **fields: Any) -> Any:
    request = pb.ListPeriodRequest(conversation_id=room, period=period, **fields)
    return await tenant.raw.call("ListPeriod", request)


async def test_a_day_has_its_events_and_its_bounds(tenant: Tenant) -> None:
    room = await hourly(tenant, "2025-10-25T20:00", 30)

    page = await listed_in(tenant, room, "2025-10-26", timezone="Europe/Zurich")

    # 22:00 UTC to 23:00 UTC of the next day: summer time ends, the day has 25 hours.
    assert [event.seq for event in page.events] == list(range(3, 28))
    assert page.start_time.ToDatetime(UTC) == datetime(2025, 10, 25, 22, tzinfo=UTC)
    assert page.end_time.ToDatetime(UTC) == datetime(2025, 10, 26, 23, tzinfo=UTC)


async def test_today_is_the_default_zones(tenant: Tenant) -> None:
    room = (await append(tenant.raw, "", user("now"))).conversation_id

    page = await listed_in(tenant, room, "today")

    assert page.end_time.seconds - page.start_time.seconds == 86_400
    assert page.start_time.seconds % 86_400 == 0


async def test_types_and_order_and_pages(tenant: Tenant) -> None:
    room = await hourly(tenant, "2025-10-24T00:00", 5)
    note = system("noted")
    note.event_time.FromDatetime(datetime(2025, 10, 24, 5, tzinfo=UTC))
    await append(tenant.raw, room, note)
    request = pb.ListPeriodRequest(
        conversation_id=room, period="2025-W43", types=[res.EVENT_TYPE_MESSAGE],
        order=pb.SORT_ORDER_DESCENDING, page_size=2,
    )  # fmt: skip
    seqs: list[int] = []
    while True:
        page = await tenant.raw.call("ListPeriod", request)
        seqs += [event.seq for event in page.events]
        request.page_token = page.next_page_token
        if not request.page_token:
            break

    assert seqs == [5, 4, 3, 2, 1]


async def test_follows_the_branch(tenant: Tenant) -> None:
    room = await hourly(tenant, "2025-10-24T00:00", 4)
    first = await tenant.raw.call("GetEvent", pb.GetEventRequest(conversation_id=room, seq=2))
    await revert(tenant.raw, room, first.event.event_id)

    current = await listed_in(tenant, room, "2025-10-24")
    trunk = await listed_in(tenant, room, "2025-10-24", branch=1)

    assert [event.seq for event in current.events] == [1, 2]
    assert [event.seq for event in trunk.events] == [1, 2, 3, 4]


async def test_pages_of_today_stay_with_their_day(tenant: Tenant, storage: RunningStorage) -> None:
    """The second page is asked for after midnight."""
    room = await hourly(tenant, "2025-10-24T20:00", 8)
    clock = [datetime(2025, 10, 24, 23, 59, tzinfo=UTC)]
    database = storage.adapters.database
    access = Access(PostgresConversations(database))
    handler = PeriodHandler(PostgresEvents(database), access, now=lambda: clock[0])
    set_current_principal(Principal(UUID(tenant.tenant_id), frozenset({Scope.DATA})))
    request = pb.ListPeriodRequest(conversation_id=room, period="today", page_size=3)
    first = await handler.ListPeriod(request, None)
    clock[0] += timedelta(minutes=2)
    request.page_token = first.next_page_token

    second = await handler.ListPeriod(request, None)

    assert [event.seq for event in (*first.events, *second.events)] == [1, 2, 3, 4]
    assert (second.start_time, second.end_time) == (first.start_time, first.end_time)


@pytest.mark.parametrize("change", ["period", "timezone", "types", "branch"])
async def test_a_page_token_continues_only_its_own_query(tenant: Tenant, change: str) -> None:
    changes: dict[str, Callable[[pb.ListPeriodRequest], Any]] = {
        "period": lambda r: setattr(r, "period", "this_week"),
        "timezone": lambda r: setattr(r, "timezone", "Europe/Zurich"),
        "types": lambda r: r.types.append(res.EVENT_TYPE_MESSAGE),
        "branch": lambda r: setattr(r, "branch", 1),
    }
    room = (await append(tenant.raw, "", user("a"), user("b"))).conversation_id
    request = pb.ListPeriodRequest(conversation_id=room, period="today", page_size=1)
    request.page_token = (await tenant.raw.call("ListPeriod", request)).next_page_token
    changes[change](request)

    refused = await failure(tenant.raw.call("ListPeriod", request))

    assert refused.reason == "PAGE_TOKEN_INVALID"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"period": ""}, "period"),
        ({"period": "last_week"}, "period"),
        ({"period": "2025-13"}, "period"),
        ({"period": "2025-10-02/2025-10-01"}, "period"),
        ({"period": "2025-10-01/2025-11"}, "period"),
        ({"period": "9999"}, "period"),
        ({"period": "today", "timezone": "Europe/Atlantis"}, "timezone"),
        ({"period": "today", "timezone": "../../etc/passwd"}, "timezone"),
        ({"period": "today", "order": 9}, "order"),
        ({"period": "today", "types": [9]}, "types[0]"),
        ({"period": "today", "branch": -1}, "branch"),
        ({"period": "today", "page_size": -1}, "page_size"),
        ({"period": "today", "conversation_id": "x"}, "conversation_id"),
    ],
    ids=str,
)
async def test_malformed_fields_are_named(
    tenant: Tenant, fields: dict[str, Any], field: str
) -> None:
    room = await empty_conversation(tenant)
    request = pb.ListPeriodRequest(**{"conversation_id": room, **fields})

    refused = await failure(tenant.raw.call("ListPeriod", request))

    assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))


@pytest.mark.parametrize(("field", "size"), [("period", 101), ("timezone", 65)])
async def test_overlong_fields_are_refused(tenant: Tenant, field: str, size: int) -> None:
    room = await empty_conversation(tenant)
    request = pb.ListPeriodRequest(conversation_id=room, period="today")
    setattr(request, field, "x" * size)

    refused = await failure(tenant.raw.call("ListPeriod", request))

    assert (refused.reason, refused.fields) == ("LIMIT_EXCEEDED", (field,))


async def test_of_a_missing_conversation_is_not_found(tenant: Tenant) -> None:
    refused = await failure(listed_in(tenant, str(uuid4()), "today"))

    assert refused.reason == "RESOURCE_NOT_FOUND"


async def test_of_an_event_of_another_time_it_is_empty(tenant: Tenant) -> None:
    stored = await append(tenant.raw, "", user("now"))
    assert ids(stored)

    page = await listed_in(tenant, stored.conversation_id, "1999")

    assert (list(page.events), page.next_page_token) == ([], "")
