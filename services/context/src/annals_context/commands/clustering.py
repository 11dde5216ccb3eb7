"""Has the topics of a conversation follow its events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from annals_context.clustering_ports import ClusteringWork
from annals_context.domain.topic_clusters import (
    NO_TOPIC,
    ClusterParameters,
    Labels,
    Vectors,
    assigned,
    centroids,
    clustered,
    kept_ids,
    most_typical,
)
from annals_context.domain.topic_texts import Said, TopicTexts, topic_texts
from annals_context.domain.topic_work import (
    Clustering,
    Found,
    FoundTopic,
    Line,
    Member,
    is_whole_due,
)
from annals_context.ports import Caller

TYPICAL_EVENTS = 20
"""Of a topic; its texts are made from these."""


class ClusterConversation:
    """Adds new events to the topics they are like, and clusters all anew now and then."""

    def __init__(self, work: ClusteringWork, parameters: ClusterParameters) -> None:
        """`parameters`: of conversations whose agent says nothing else."""
        self._work, self._default = work, parameters

    async def __call__(self, caller: Caller, conversation_id: str) -> None:
        """Do what is due for the conversation of the caller's job."""
        now = await self._work.get(caller)
        wanted = now.wanted(self._default)
        if is_whole_due(now, wanted):
            found = await self._whole(caller, conversation_id, now, wanted)
        else:
            found = await self._added(caller, now, wanted)
        await self._work.apply(caller, found)

    async def _added(self, caller: Caller, now: Clustering, wanted: ClusterParameters) -> Found:
        members: list[Member] = []
        topic_ids: list[str] = []
        names = [topic.topic_id for topic in now.topics]
        async for page, vectors in self._work.pages(caller, changed_only=True):
            labels = assigned(vectors, now.centroids, wanted.threshold)
            members += page
            topic_ids += _named(labels, names)
        return Found(tuple(members), tuple(topic_ids), (), now.embedding_model)

    async def _whole(
        self, caller: Caller, conversation_id: str, now: Clustering, wanted: ClusterParameters
    ) -> Found:
        members, vectors = await self._all(caller)
        # Minutes for the largest ones: the lease is renewed meanwhile.
        labels = await asyncio.to_thread(clustered, vectors, wanted)
        former = [member.topic_id for member in members]
        event_ids = [member.event_id for member in members]
        names = kept_ids(labels, former, event_ids, conversation_id)
        topics = await self._topics(caller, members, vectors, labels)
        named = (replace(topic, topic_id=name) for topic, name in zip(topics, names, strict=True))
        return Found(
            tuple(members),
            tuple(_named(labels, names)),
            tuple(named),
            now.embedding_model,
            parameters=str(wanted),
        )

    async def _all(self, caller: Caller) -> tuple[list[Member], Vectors]:
        members: list[Member] = []
        parts: list[Vectors] = []
        async for page, vectors in self._work.pages(caller, changed_only=False):
            members += page
            parts.append(vectors)
        return members, np.concatenate(parts) if parts else np.zeros((0, 1), dtype=np.float32)

    async def _topics(
        self, caller: Caller, members: Sequence[Member], vectors: Vectors, labels: Labels
    ) -> list[FoundTopic]:
        means = centroids(vectors, labels)
        typical = [
            most_typical(vectors, mean, np.flatnonzero(labels == number), TYPICAL_EVENTS)
            for number, mean in enumerate(means)
        ]
        wanted = [members[place].event_id for places in typical for place in places]
        said = await self._work.said(caller, wanted)
        spoken = [_spoken(places, members, said) for places in typical]
        texts = await asyncio.to_thread(topic_texts, spoken) if spoken else []
        return [
            _found_topic(text, mean, [members[one.place] for one in words], members)
            for text, mean, words in zip(texts, means, spoken, strict=True)
        ]


def _named(labels: Labels, names: Sequence[str]) -> list[str]:
    return ["" if number == NO_TOPIC else names[number] for number in labels.tolist()]


def _spoken(places: Sequence[int], members: Sequence[Member], said: dict[str, Said]) -> list[Said]:
    found = ((place, said.get(members[place].event_id)) for place in places)
    return [replace(words, place=place) for place, words in found if words is not None]


def _found_topic(
    texts: TopicTexts, mean: Vectors, sources: Sequence[Member], members: Sequence[Member]
) -> FoundTopic:
    return FoundTopic(
        topic_id="",
        label=texts.label,
        summary=tuple(Line(members[place], text) for place, text in texts.summary),
        samples=tuple(Line(members[place], text) for place, text in texts.samples),
        centroid=mean.astype("<f2").tobytes(),
        sources=tuple(sources),
    )
