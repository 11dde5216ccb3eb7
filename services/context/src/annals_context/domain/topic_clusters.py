"""Topics as clusters of vectors. The clustering is scikit-learn's; what is here chooses and names.

Vectors have unit length and centroids are plain means of them, so that the product of a vector and
a centroid is the mean cosine between the vector and the members: the same measure for joining
clusters, for joining one and for telling whether two are alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering, MiniBatchKMeans

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]
NO_TOPIC = -1
MAX_TOPICS = 500
DIRECT_EVENTS = 4_000
"""Up to so many events are clustered as they are: memory grows with their square."""
MICRO_CLUSTERS = 1_000
"""More of them are first gathered into so many groups, and those are clustered."""
MICRO_ROUNDS = 10
SAMPLED_EVENTS = 20_000
"""The groups are found in so many events, evenly taken, and hold for all."""
SEED = 20_240_229


@dataclass(frozen=True, slots=True)
class ClusterParameters:
    """`threshold`: mean cosine within a topic, 0–1. `min_events`: fewer make no topic."""

    threshold: float = 0.5
    min_events: int = 4

    def __str__(self) -> str:
        return f"average-linkage threshold={self.threshold} min_events={self.min_events}"


def clustered(vectors: Vectors, parameters: ClusterParameters) -> Labels:
    """Return the topic of every vector (n, d), numbered from 0 in the order in which they begin.

    NO_TOPIC for what is like too few others. The same vectors give the same topics.
    """
    if len(vectors) < max(2, parameters.min_events):
        return np.full(len(vectors), NO_TOPIC, dtype=np.int64)
    if len(vectors) <= DIRECT_EVENTS:
        labels = _joined(vectors, parameters.threshold)
    else:
        groups = _gathered(vectors)
        labels = _joined(centroids(vectors, groups), parameters.threshold)[groups]
    return _numbered(labels, parameters.min_events)


def _joined(means: Vectors, threshold: float) -> Labels:
    """Join what is alike on average, the most alike first."""

    distances = np.clip(1.0 - means @ means.T, 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    joining = AgglomerativeClustering(
        n_clusters=None,
        metric="precomputed",
        linkage="average",
        distance_threshold=1.0 - threshold,
    )
    labels: Labels = joining.fit_predict(distances).astype(np.int64)
    return labels


def _gathered(vectors: Vectors) -> Labels:

    gathering = MiniBatchKMeans(
        n_clusters=MICRO_CLUSTERS,
        batch_size=4_096,
        max_iter=MICRO_ROUNDS,
        n_init=1,
        random_state=SEED,
    )
    gathering.fit(vectors[:: max(1, len(vectors) // SAMPLED_EVENTS)])
    found: Labels = gathering.predict(vectors).astype(np.int64)
    # Groups that got nothing would have no mean.
    _, labels = np.unique(found, return_inverse=True)
    return labels.astype(np.int64)


def _numbered(labels: Labels, min_events: int) -> Labels:
    """Leave small clusters out and number the others by their first member."""
    names, first, counts = np.unique(labels, return_index=True, return_counts=True)
    large = np.flatnonzero(counts >= min_events)
    largest = large[np.argsort(-counts[large], kind="stable")][:MAX_TOPICS]
    ordered = largest[np.argsort(first[largest])]
    numbers = np.full(len(names), NO_TOPIC, dtype=np.int64)
    numbers[ordered] = np.arange(len(ordered))
    return numbers[np.searchsorted(names, labels)]


def centroids(vectors: Vectors, labels: Labels) -> Vectors:
    """Return the means (k, d) of topics numbered from 0 without gaps."""
    count = int(labels.max(initial=NO_TOPIC)) + 1
    means = np.zeros((count, vectors.shape[1]), dtype=np.float32)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count + 1))
    for number in range(count):
        means[number] = vectors[order[starts[number] : starts[number + 1]]].mean(axis=0)
    return means


def assigned(vectors: Vectors, means: Vectors, threshold: float) -> Labels:
    """Return for every vector the topic whose members are most like it, if they are enough."""
    if not len(means) or not len(vectors):
        return np.full(len(vectors), NO_TOPIC, dtype=np.int64)
    likeness = vectors @ means.T
    nearest = likeness.argmax(axis=1)
    is_enough = likeness[np.arange(len(vectors)), nearest] >= threshold
    return np.where(is_enough, nearest, NO_TOPIC).astype(np.int64)


def kept_ids(
    labels: Labels, former: Sequence[str], event_ids: Sequence[str], conversation_id: str
) -> list[str]:
    """Return an id for every topic. `former`: the topic each event was in, "" for none.

    A topic keeps the id of the one it shares most with, if that is more than half of the smaller
    of the two. A new one is named after its first event that lends its name to no other.
    """
    sizes = Counter(labels.tolist())
    former_sizes = Counter(former)
    shared = Counter(
        (number, was) for number, was in zip(labels.tolist(), former, strict=True)
        if number != NO_TOPIC and was
    )  # fmt: skip
    kept: dict[int, str] = {}
    for (number, was), both in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        is_most = 2 * both > min(sizes[number], former_sizes[was])
        if is_most and number not in kept and was not in kept.values():
            kept[number] = was
    taken = set(former) | set(kept.values())
    members = _members(labels, event_ids)
    count = int(labels.max(initial=NO_TOPIC)) + 1
    return [
        kept.get(number) or _new_id(members[number], taken, conversation_id)
        for number in range(count)
    ]


def _members(labels: Labels, event_ids: Sequence[str]) -> dict[int, list[str]]:
    members: dict[int, list[str]] = {}
    for number, event_id in zip(labels.tolist(), event_ids, strict=True):
        members.setdefault(number, []).append(event_id)
    return members


def _new_id(event_ids: Sequence[str], taken: set[str], conversation_id: str) -> str:
    made = next(name for name in _names(event_ids, conversation_id) if name not in taken)
    taken.add(made)
    return made


def _names(event_ids: Sequence[str], conversation_id: str) -> Iterator[str]:
    space = UUID(conversation_id)
    for event_id in event_ids:
        yield str(uuid5(space, event_id))
    # Each of them lent its name to a topic of before that is another one by now.
    yield str(uuid5(space, "\n".join(event_ids)))


def most_typical(vectors: Vectors, mean: Vectors, members: Labels, count: int) -> list[int]:
    """Return the places of at most `count` members, those most like all the others first."""
    likeness = vectors[members] @ mean
    order = np.lexsort((members, -likeness))[:count]
    return [int(members[place]) for place in order]
