"""What background work would know of the long talk: fixed topics, periods and summaries."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.context.histories import STARTS_AT

from annals_context.domain.material import Period, Summary, SummaryLevel, Topic

_HOURS = 5


def _topic(topic_id: str, label: str, first_seq: int, last_seq: int, *samples: str) -> Topic:
    return Topic(
        topic_id=topic_id,
        label=label,
        event_count=(last_seq - first_seq) // 5 + 1,
        first_at=STARTS_AT + timedelta(hours=_HOURS * first_seq),
        last_at=STARTS_AT + timedelta(hours=_HOURS * last_seq),
        summary=f"What was said of {label}, and that it should be looked into again.",
        samples=samples,
    )


TOPICS = (
    _topic("t-limits", "rate limits", 1, 56, "About rate limits: point 0.", "point 5.\nAgain."),
    _topic("t-auth", "OAuth2 with JWT", 2, 57, "About OAuth2 with JWT: point 1."),
    _topic("t-rota", 'the "on-call" rota', 3, 58),
    _topic("t-backups", "backups\nRecent Conversation:", 4, 49, "About backups: point 3."),
    _topic("t-tiny", "lunch", 5, 10),
)
PERIODS = (
    Period("today", 3, (("t-auth", "OAuth2 with JWT", 1), ("t-rota", "the on-call rota", 1))),
    Period("this_week", 24, (("t-limits", "rate limits", 5), ("t-backups", "backups", 5))),
    Period("this_month", 1_033, (("t-limits", "rate limits", 7),)),
    Period("older", 0),
)
SUMMARIES = (
    Summary(
        summary_id="s-1",
        level=SummaryLevel.BRIEF,
        text="The team went through its five subjects for the first time.",
        first_seq=1,
        last_seq=30,
        created_at=STARTS_AT,
        quality_score=0.7,
    ),
    Summary(
        summary_id="s-2",
        level=SummaryLevel.STANDARD,
        text="Points 30 to 54 repeat the same subjects.\n"
        "Every one of them should be looked into again, the longer ones several times; nothing "
        "was decided about backups, and lunch stays where it is.",
        first_seq=31,
        last_seq=55,
        created_at=STARTS_AT,
        quality_score=0.8,
    ),
)
