"""What is said of a conversation beside its events: summaries, topics, periods.

Every entry has its handle and the call that returns what it stands for. Labels, summaries and
samples are made of what people said: each is written on one line, so that none can begin a line
that looks like a heading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from annals_context.domain.material import Period, Summary, Topic
from annals_context.domain.model import DetailLevel, Section
from annals_context.domain.snippets import snippet

SUMMARIES_HEADING = "Conversation Summaries:"
CLUSTERS_HEADING = "Message Clusters:"
PERIODS_HEADING = "Temporal Overview:"
NAVIGATION_HEADING = "Navigation:"
MAX_SAMPLES = 3
MAX_TOPICS_PER_PERIOD = 8
SUMMARY_SNIPPETS = 3
"""How many times the length of a snippet a topic's summary may have."""
_PERIOD_NAMES = {
    "today": "Today",
    "this_week": "This Week",
    "this_month": "This Month",
    "older": "Older",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A paragraph of an overview at each level it can be shown at, the richest first.

    `section` FRAMING: it belongs to its heading and is no item of its own.
    """

    section: Section
    texts: Mapping[DetailLevel, str]
    handle: str = ""
    retrieve_with: str = ""
    first_seq: int = 0
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class OverviewBlock:
    """A heading and its entries, in the order they are written.

    `by_priority`: the same entries in the order they are offered a place.
    """

    heading: str
    entries: tuple[Entry, ...]
    by_priority: tuple[Entry, ...] = field(default=())

    @property
    def offered(self) -> tuple[Entry, ...]:
        """The entries, those that matter most first."""
        return self.by_priority or self.entries


@dataclass(frozen=True, slots=True)
class Overview:
    """What stands before the events, in its order: summaries, then the index of the rest."""

    summaries: tuple[OverviewBlock, ...] = ()
    index: tuple[OverviewBlock, ...] = ()


def summary_block(summaries: Iterable[Summary], *, snippet_chars: int) -> OverviewBlock:
    """Write summaries by their range; the newest is offered a place first."""
    by_range = sorted(summaries, key=lambda one: (one.first_seq, one.summary_id))
    entries = tuple(_summary_entry(one, snippet_chars) for one in by_range if one.text.strip())
    return OverviewBlock(SUMMARIES_HEADING, entries, entries[::-1])


def cluster_block(topics: Sequence[Topic], *, snippet_chars: int) -> OverviewBlock:
    """Write topics by the time they began, which never changes; the largest come first to a place.

    So a topic that grows past another moves nothing of what stands before the newest events.
    """
    entries = {topic.topic_id: _cluster_entry(topic, snippet_chars) for topic in topics}
    by_age = sorted(topics, key=lambda topic: (topic.first_at, topic.topic_id))
    by_size = sorted(topics, key=lambda topic: (-topic.event_count, topic.topic_id))
    return OverviewBlock(
        CLUSTERS_HEADING,
        tuple(entries[topic.topic_id] for topic in by_age),
        tuple(entries[topic.topic_id] for topic in by_size),
    )


def period_blocks(periods: Sequence[Period]) -> tuple[OverviewBlock, ...]:
    """Write how much there is of each period, what was spoken of in it, and how to get at it."""
    known = [period for period in periods if period.name in _PERIOD_NAMES and period.event_count]
    if not known:
        return ()
    overview = OverviewBlock(PERIODS_HEADING, tuple(_period_entry(period) for period in known))
    topics = (_period_topics(period) for period in known if period.topics)
    return (overview, *topics, _navigation())


def _summary_entry(summary: Summary, snippet_chars: int) -> Entry:
    retrieve_with = _call("expand_detail", summary.summary_id)
    span = f"Messages #{summary.first_seq} to #{summary.last_seq}"
    short = snippet(summary.text, max_chars=snippet_chars)
    texts = {
        DetailLevel.FULL: f"{span}: {_one_line(summary.text)}\nRetrieve with: {retrieve_with}",
        DetailLevel.SNIPPET: f"{span}: {short}\nRetrieve with: {retrieve_with}",
    }
    return Entry(
        Section.SUMMARY,
        texts,
        summary.summary_id,
        retrieve_with,
        summary.first_seq,
        summary.last_seq,
    )


def _cluster_entry(topic: Topic, snippet_chars: int) -> Entry:
    retrieve_with = _call("get_cluster", topic.topic_id)
    name = f'Cluster: "{_label(topic.label)}" ({_messages(topic.event_count)})'
    period = f"Period: {topic.first_at.date()} to {topic.last_at.date()}"
    retrieve = f"Retrieve with: {retrieve_with}"
    told = _told(topic, snippet_chars)
    texts = {
        DetailLevel.FULL: "\n".join([name, period, *told, retrieve]),
        DetailLevel.SNIPPET: "\n".join([name, period, retrieve]),
        DetailLevel.STUB: f"{name} {retrieve_with}",
    }
    return Entry(Section.TOPICS, texts, topic.topic_id, retrieve_with)


def _told(topic: Topic, snippet_chars: int) -> list[str]:
    """Return what a topic says of itself: its summary and a few of its messages."""
    summary = snippet(topic.summary, max_chars=SUMMARY_SNIPPETS * snippet_chars)
    samples = [snippet(one, max_chars=snippet_chars) for one in topic.samples[:MAX_SAMPLES]]
    shown = [f'  - "{sample}"' for sample in samples if sample]
    return [
        *([f"Summary: {summary}"] if summary else []),
        *(["Sample messages:", *shown] if shown else []),
    ]


def _period_entry(period: Period) -> Entry:
    retrieve_with = _call("get_period_messages", period.name)
    shown = f"{_PERIOD_NAMES[period.name]}: {_messages(period.event_count)}, {retrieve_with}"
    return Entry(Section.PERIODS, {DetailLevel.FULL: shown}, period.name, retrieve_with)


def _period_topics(period: Period) -> OverviewBlock:
    heading = f"Topic Overview ({_PERIOD_NAMES[period.name]}):"
    entries = [_period_topic(*topic) for topic in period.topics[:MAX_TOPICS_PER_PERIOD]]
    return OverviewBlock(heading, tuple(entries))


def _period_topic(topic_id: str, label: str, event_count: int) -> Entry:
    retrieve_with = _call("get_topic_messages", topic_id)
    shown = f'"{_label(label)}": {_messages(event_count)}, {retrieve_with}'
    return Entry(Section.TOPICS, {DetailLevel.FULL: shown}, topic_id, retrieve_with)


def _navigation() -> OverviewBlock:
    lines = (
        "- get_period_messages(period), get_topic_messages(topic): whole parts of the past",
        "- vector_search(query, limit): anything else that was said",
    )
    entry = Entry(Section.FRAMING, {DetailLevel.FULL: "\n".join(lines)})
    return OverviewBlock(NAVIGATION_HEADING, (entry,))


def _call(name: str, handle: str) -> str:
    return f'{name}("{handle}")'


def _messages(count: int) -> str:
    return f"{count:,} message" if count == 1 else f"{count:,} messages"


def _label(label: str) -> str:
    return _one_line(label).replace('"', "'")


def _one_line(text: str) -> str:
    return " ".join(text.split())
