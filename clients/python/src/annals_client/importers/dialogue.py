"""Dialogues of two speakers in dated sessions, as the LoCoMo data set writes them.

`speaker_a` becomes the user, `speaker_b` the assistant; both keep their names. A turn's
time is its session's, taken as UTC, plus a second for each turn before it. A picture is
written into the text by its caption, so that it is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from annals.storage.v1 import event_service_pb2 as pb
from annals_client.build import EventFields, assistant, user
from annals_client.importers.documents import Document, ImportFileError

_SESSION = re.compile(r"session_(\d+)")
_TIME_FORMAT = "%I:%M %p on %d %B, %Y"


def events_of(document: Document) -> Iterator[pb.NewEvent]:
    """Yield the turns in order. Raises ImportFileError naming the turn that is malformed."""
    dialogue = _dialogue(document)
    for number, turns in _sessions(dialogue):
        start = _time(dialogue.get(f"session_{number}_date_time"), document)
        for index, turn in enumerate(turns):
            place = f"{document.place}, session {number}, turn {index + 1}"
            when = start + timedelta(seconds=index) if start else None
            yield _event(dialogue, turn, number, when, place)


def title_of(document: Document) -> str:
    """Return the speakers and the sample's id."""
    dialogue = _dialogue(document)
    speakers = f"{dialogue.get('speaker_a', '?')} and {dialogue.get('speaker_b', '?')}"
    sample = document.content.get("sample_id")
    return f"{speakers} ({sample})" if sample else speakers


def metadata_of(document: Document) -> dict[str, Any]:
    """Return the sample's id."""
    sample = document.content.get("sample_id")
    return {"sample_id": str(sample)} if sample else {}


def _dialogue(document: Document) -> dict[str, Any]:
    content = document.content
    inner = content.get("conversation", content) if isinstance(content, dict) else None
    if not isinstance(inner, dict) or "speaker_a" not in inner:
        raise ImportFileError(f"{document.place}: has no speaker_a; is it a dialogue?")
    return inner


def _sessions(dialogue: dict[str, Any]) -> list[tuple[int, list[Any]]]:
    numbers = sorted(int(m[1]) for name in dialogue if (m := _SESSION.fullmatch(name)))
    sessions = ((number, dialogue[f"session_{number}"]) for number in numbers)
    return [(number, turns) for number, turns in sessions if isinstance(turns, list)]


def _event(
    dialogue: dict[str, Any], turn: Any, session: int, when: datetime | None, place: str
) -> pb.NewEvent:
    if not isinstance(turn, dict) or not isinstance(turn.get("speaker"), str):
        raise ImportFileError(f"{place}: has no speaker")
    speaker = turn["speaker"]
    fields: EventFields = {"metadata": _metadata(turn, session)}
    if when:
        fields["event_time"] = when
    say = user if speaker == dialogue["speaker_a"] else assistant
    return say(_text(turn), author_name=speaker, **fields)


def _text(turn: dict[str, Any]) -> str:
    text, caption = str(turn.get("text", "")), turn.get("blip_caption")
    return f"{text}\n[shares a picture: {caption}]".strip() if caption else text


def _metadata(turn: dict[str, Any], session: int) -> dict[str, Any]:
    kept: dict[str, Any] = {"session": session}
    for name, source in (("dia_id", "dia_id"), ("image_urls", "img_url")):
        if turn.get(source):
            kept[name] = turn[source]
    return kept


def _time(written: Any, document: Document) -> datetime | None:
    if written is None:
        return None
    try:
        return datetime.strptime(str(written), _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise ImportFileError(
            f"{document.place}: time {written!r} is not like '1:56 pm on 8 May, 2023'"
        ) from None
