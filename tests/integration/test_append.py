from annals_client import assistant, user
from tests.support.storage import Tenant


async def test_appended_events_come_back_in_order(tenant: Tenant) -> None:
    stored = await tenant.client.events.append("", [user("hello"), assistant("hi")])

    listed = [event async for event in tenant.client.events.list(stored.conversation_id)]

    assert [event.seq for event in listed] == [1, 2]
    assert [event.message.content for event in listed] == ["hello", "hi"]
