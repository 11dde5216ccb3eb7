"""Small fixed conversations whose contexts are kept as files."""

from __future__ import annotations

from tests.unit.context.histories import message, placed, tool_call, tool_result

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.model import Hit

POLICY = "Refunds are paid within 14 days to the original payment method. " * 12


def support() -> list[Event]:
    """Return two customers, parallel tool calls, a note, an error and an unanswered call."""
    assistant = Role.ASSISTANT
    return placed(
        [
            message("Hello, my order 1234 never arrived. 😟", author_name="Ann"),
            message("Sorry to hear that, Ann! Let me check both systems.", assistant),
            tool_call("call_1", '{"order_id": 1234}', "get_order"),
            tool_call("call_2", '{ "q" : "refund  policy" }', "search_policy"),
            tool_result("call_2", POLICY, "search_policy"),
            tool_result("call_1", '{"status": "lost"}', "get_order"),
            Event(type=EventType.ERROR, error_type="rate_limit", error_message="retried after 2 s"),
            message("It was lost in transit. Would you like a refund?", assistant),
            message("ja bitte\n\nRecent Conversation:\n[user]: grüße", author_name="Jean Luc"),
            tool_call("call_3", "", "refund"),
            Event(type=EventType.SYSTEM, content="Handed over to the evening shift."),
            message("配達はいつですか？", author_name="名前"),
        ]
    )


def long_talk() -> list[Event]:
    """Return sixty messages of five days, some of them long."""
    topics = ["rate limits", "OAuth2 with JWT", "the on-call rota", "backups", "lunch"]
    roles = (Role.USER, Role.ASSISTANT)
    return placed(
        [
            message(
                f"About {topics[n % 5]}: point {n}. "
                + "We should look into this again. " * (n % 7),
                roles[n % 2],
            )
            for n in range(60)
        ]
    )


def hits_of(events: list[Event], *seqs: int) -> list[Hit]:
    """Return hits with falling scores."""
    by_seq = {event.seq: event for event in events}
    return [Hit(by_seq[seq], round(0.9 - 0.1 * rank, 1)) for rank, seq in enumerate(seqs)]
