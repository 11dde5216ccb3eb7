"""What a provider's message holds beyond a canonical event, kept in the event's metadata.

Each format has a member of its own, named after it, whose value is a JSON text: so that numbers
survive any store, and so that nothing of one provider (such as signed thoughts) ever reaches
another one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import Event
from annals_context.domain.formats import values
from annals_context.domain.formats.compact_json import dumps

OPENAI_CHAT = "openai_chat"
OPENAI_RESPONSES = "openai_responses"
ANTHROPIC_MESSAGES = "anthropic_messages"
GEMINI_CONTENTS = "gemini_contents"
_MAX_BYTES = 60 * 1024
"""Stays below the 64 KiB that the metadata of an event may take."""


def load(event: Event, key: str) -> Mapping[str, object]:
    """Read the metadata leniently: its owner may have written anything there.

    What no payload could hold (half a surrogate pair, a number without end) counts as nothing.
    """
    text = event.metadata.get(key)
    if not isinstance(text, str):
        return {}
    try:
        loaded = json.loads(text)
        dumps(loaded).encode()
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def load_list(event: Event, key: str, member: str) -> list[dict[str, object]]:
    """Return the objects of an array that was kept; empty when there is none."""
    found = load(event, key).get(member)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def members(event: Event, key: str, member: str, but: Collection[str]) -> dict[str, object]:
    """Return what was kept of a provider's object, without the members `but`.

    These are what the event says itself.
    """
    found = load(event, key).get(member)
    kept = found if isinstance(found, dict) else {}
    return {name: value for name, value in kept.items() if name not in but}


def metadata(key: str, kept: Mapping[str, object], path: str) -> dict[str, object]:
    """Return the metadata that keeps what is not empty of `kept`.

    Raises FieldInvalidError when it is more than metadata may take.
    """
    filled = {name: value for name, value in kept.items() if value}
    if not filled:
        return {}
    encoded = values.encodable(filled, path)
    if len(encoded.encode()) > _MAX_BYTES:
        raise FieldInvalidError(
            path,
            f"keeps more than {_MAX_BYTES:,} bytes beside its words, which counts the words of "
            "messages in parts as well; refer to images and documents by address",
        )
    return {key: encoded}
