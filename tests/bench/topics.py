"""`python -m tests.bench.topics --data PATH`: topics of real dialogues, and of a huge one.

The dialogues are LoCoMo's, a turn an event, embedded by the default model. Their topics are found
by the default threshold and, beside it, by the 0.85 of other systems. They are clustered twice
more, with and without the former topics known. The huge conversation is made up: vectors around
centres that have as much in common with their centre as turns of the dialogues with their topic.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import click
import numpy as np
from sklearn.metrics import silhouette_score
from tests.bench.harness import Report

from annals_context.domain.topic_clusters import (
    NO_TOPIC,
    ClusterParameters,
    Labels,
    Vectors,
    centroids,
    clustered,
    kept_ids,
    most_typical,
)
from annals_context.domain.topic_texts import Said, topic_texts
from annals_storage.embedding.loading import load_embedder

ROOM = UUID(int=1)
DIMENSIONS = 384
CENTRES = 300
TYPICAL = 20
SHOWN = 8
STRICT = ClusterParameters(threshold=0.85)
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Turns of one dialogue, in order, with their vectors."""

    name: str
    turns: tuple[Said, ...]
    vectors: Vectors


def read(sample: dict[str, Any]) -> tuple[Said, ...]:
    """Return the turns of a LoCoMo sample."""
    talk = sample["conversation"]
    sessions = sorted(filter(_SESSION.fullmatch, talk), key=lambda name: int(name.split("_")[1]))
    said = [turn for name in sessions for turn in talk[name]]
    return tuple(Said(place, turn["text"], turn["speaker"]) for place, turn in enumerate(said))


async def embedded(samples: Sequence[dict[str, Any]], models: Path) -> list[Dialogue]:
    """Embed the turns of every sample."""
    embedder = await load_embedder(data_dir=models, threads=2)
    dialogues = []
    for sample in samples:
        turns = read(sample)
        vectors = await embedder.embed([turn.text for turn in turns])
        dialogues.append(Dialogue(sample["sample_id"], turns, np.asarray(vectors, np.float32)))
    return dialogues


def ids_of(labels: Labels, former: Sequence[str]) -> list[str]:
    """Return the ids of topics, as a worker gives them."""
    names = [str(uuid5(ROOM, str(place))) for place in range(len(labels))]
    return kept_ids(labels, former, names, str(ROOM))


def of_events(labels: Labels, ids: Sequence[str]) -> list[str]:
    """Return the topic id of every event."""
    return ["" if number == NO_TOPIC else ids[number] for number in labels.tolist()]


def measure(dialogue: Dialogue, report: Report) -> None:
    """Add the figures of one dialogue."""
    vectors, name = dialogue.vectors, dialogue.name
    labels = clustered(vectors, ClusterParameters())
    inside = labels != NO_TOPIC
    report.add(f"topics_{name}", int(labels.max()) + 1, "topics")
    report.add(f"covered_{name}", float(inside.mean()), "share")
    silhouette = silhouette_score(vectors[inside], labels[inside], metric="cosine")
    report.add(f"silhouette_{name}", float(silhouette), "cosine", ">= 0.1")
    strict = clustered(vectors, STRICT) != NO_TOPIC
    report.add(f"covered_at_0.85_{name}", float(strict.mean()), "share")
    report.add(f"ids_kept_{name}", kept_share(vectors, labels), "share", ">= 1")
    for line in shown(dialogue, labels):
        report.note(f"{name}: {line}")


def kept_share(vectors: Vectors, labels: Labels) -> float:
    """Return how many ids are the same when all is clustered twice: with itself as the former
    state, and from nothing.
    """
    ids = ids_of(labels, [""] * len(labels))
    again = clustered(vectors, ClusterParameters())
    with_former = ids_of(again, of_events(labels, ids))
    from_nothing = ids_of(again, [""] * len(again))
    same = [a == b == c for a, b, c in zip(ids, with_former, from_nothing, strict=True)]
    return sum(same) / max(1, len(same))


def shown(dialogue: Dialogue, labels: Labels) -> list[str]:
    """Return size, label and a sample of the largest topics."""
    means = centroids(dialogue.vectors, labels)
    places = [
        most_typical(dialogue.vectors, mean, np.flatnonzero(labels == number), TYPICAL)
        for number, mean in enumerate(means)
    ]
    texts = topic_texts([[dialogue.turns[place] for place in own] for own in places])
    sizes = np.bincount(labels[labels != NO_TOPIC])
    largest = np.argsort(-sizes, kind="stable")[:SHOWN]
    return [
        f"{sizes[number]} events: {texts[number].label} — {texts[number].samples[0][1]}"
        for number in largest
    ]


def made_up(events: int) -> Vectors:
    """Return vectors of unit length around centres; the mean cosine within a centre is about .6."""
    random = np.random.default_rng(7)
    centres = random.normal(size=(CENTRES, DIMENSIONS)).astype(np.float32)
    noise = random.normal(size=(events, DIMENSIONS)).astype(np.float32)
    vectors = 1.2 * centres[random.integers(0, CENTRES, events)] + noise
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def alone(events: int) -> None:
    """Cluster made-up events; print seconds, topics, and MiB at most, the vectors' making included.

    To be run in a process of its own.
    """
    vectors = made_up(events)
    began, began_cpu = time.perf_counter(), time.process_time()
    labels = clustered(vectors, ClusterParameters())
    centroids(vectors, labels)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - began_cpu,
        "peak_mib": peak / 1024,
        "topics": int(labels.max()) + 1,
    }
    click.echo(json.dumps(found))


def measure_huge(events: int, report: Report) -> None:
    """Add time and memory at so many events."""
    command = [sys.executable, "-m", "tests.bench.topics", "--alone", str(events)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    report.add(f"cluster_{events}_seconds", found["seconds"], "s")
    report.add(f"cluster_{events}_cpu_seconds", found["cpu_seconds"], "s")
    report.add(f"cluster_{events}_peak_memory", found["peak_mib"], "MiB", "<= 2048")
    report.add(f"cluster_{events}_topics", found["topics"], "topics")
    report.note(f"{events} events are made up: {CENTRES} centres with noise, not text")


@click.command()
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the data.")
@click.option("--models", type=click.Path(path_type=Path), default=Path("build/bench/models"))
@click.option("--dialogues", default=3, show_default=True)
@click.option("--events", default=100_000, show_default=True)
@click.option("--alone", "alone_events", default=0, hidden=True)
def main(data: Path | None, models: Path, dialogues: int, events: int, alone_events: int) -> None:
    """Measure topics of dialogues, and clustering at many events."""
    if alone_events:
        alone(alone_events)
        return
    report = Report("topics", {"dialogues": dialogues, "events": events})
    path = data / "locomo" / "locomo_dev.json" if data else None
    if path is None or not path.is_file():
        report.note(f"skipped: {data} does not hold locomo/")
    else:
        samples = json.loads(path.read_text())[:dialogues]
        models.mkdir(parents=True, exist_ok=True)
        for dialogue in asyncio.run(embedded(samples, models)):
            measure(dialogue, report)
    measure_huge(events, report)
    report.write()


if __name__ == "__main__":
    main()
