"""What a message shows beside its words, whichever provider it came from.

A message that was read from a provider keeps its original content in its metadata. Images and
documents in there are references that other providers understand as well; everything else (sounds,
signed thoughts, citations) is only understood where it came from, and is named in words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from annals_context.domain.events import Event
from annals_context.domain.formats import extras, provider_metadata

SEPARATOR = extras.PARTS_SEPARATOR
_DATA_URL = re.compile(r"data:(?P<media_type>[\w.+-]+/[\w.+-]+);base64,(?P<data>[A-Za-z0-9+/=_-]+)")


@dataclass(frozen=True, slots=True)
class TextPart:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class MediaPart:
    """An image or a document: at `url`, or its bytes in base 64."""

    media_type: str
    url: str = ""
    data: str = ""

    @property
    def is_image(self) -> bool:
        """Tell whether it can be looked at; what is not known is taken for an image."""
        return not self.media_type or self.media_type.startswith("image/")

    @property
    def data_url(self) -> str:
        """The address; bytes become a data URL."""
        return self.url or f"data:{self.media_type};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """Something only its own provider can show; `kind` is that provider's name for it."""

    kind: str

    @property
    def is_thought(self) -> bool:
        """Tell whether a model thought it: nobody else is told."""
        return self.kind in {"thinking", "redacted_thinking", "thought", "reasoning"}

    @property
    def words(self) -> str:
        """Say that something is missing."""
        return f"[{self.kind or 'part'} left out]"


Part = TextPart | MediaPart | UnknownPart
Members = Mapping[str, object]


def parts_of(event: Event) -> list[Part]:
    """Return the parts of a message; its words alone where they were edited since it was read."""
    for key, original, read in _SOURCES:
        content = original(event, key)
        parts = [read(part) for part in content if isinstance(part, dict)]
        if parts and joined(parts) == event.content:
            return parts
    return [TextPart(event.content)]


def named_parts(event: Event) -> list[Part]:
    """Return what other providers see: no thoughts; the speaker's name before the words."""
    parts = [p for p in parts_of(event) if not (isinstance(p, UnknownPart) and p.is_thought)]
    if not event.author_name:
        return parts
    for index, part in enumerate(parts):
        if isinstance(part, TextPart):
            named = TextPart(f"{event.author_name}: {part.text}")
            return [*parts[:index], named, *parts[index + 1 :]]
    return [TextPart(f"{event.author_name}:"), *parts]


def joined(parts: Sequence[Part]) -> str:
    """Return the words of parts, a line each."""
    return SEPARATOR.join(part.text for part in parts if isinstance(part, TextPart))


def anthropic_part(block: Members) -> Part:
    """Read a content block of Anthropic's messages."""
    kind = str(block.get("type", ""))
    source = block.get("source")
    if kind == "text":
        return TextPart(str(block.get("text", "")))
    if kind not in {"image", "document"} or not isinstance(source, dict):
        return UnknownPart(kind)
    media_type = str(source.get("media_type") or ("" if kind == "image" else "application/pdf"))
    match source.get("type"):
        case "url":
            return MediaPart(media_type, url=str(source.get("url", "")))
        case "base64":
            return MediaPart(media_type, data=str(source.get("data", "")))
        case _:
            return UnknownPart(kind)


def gemini_part(part: Members) -> Part:
    """Read a part of Gemini's contents."""
    inline, file = part.get("inlineData"), part.get("fileData")
    if isinstance(part.get("text"), str) and not part.get("thought"):
        return TextPart(str(part["text"]))
    if isinstance(inline, dict):
        return MediaPart(_either(inline, "mimeType", "mime_type"), data=_either(inline, "data"))
    if isinstance(file, dict):
        url = _either(file, "fileUri", "file_uri")
        return MediaPart(_either(file, "mimeType", "mime_type"), url=url)
    return UnknownPart("thought" if part.get("thought") else next(iter(part), "part"))


def _either(members: Members, *names: str) -> str:
    found = (members[name] for name in names if name in members)
    return str(next(found, ""))


def openai_part(part: Members) -> Part:
    """Read a part of OpenAI's chat messages or of an item of its responses."""
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            return TextPart(str(part.get("text", "")))
        case "image_url" | "input_image":
            url = part.get("image_url")
            return _from_url(str(url.get("url", "") if isinstance(url, dict) else url or ""))
        case kind:
            return UnknownPart(str(kind))


def _from_url(url: str) -> Part:
    if not url:
        return UnknownPart("image")
    if match := _DATA_URL.fullmatch(url):
        return MediaPart(match["media_type"], data=match["data"])
    return MediaPart("", url=url)


def _chat_content(event: Event, _key: str) -> Sequence[object]:
    content = extras.message_extras(event).get("content")
    return content if isinstance(content, list) else []


def _kept_content(event: Event, key: str) -> list[dict[str, object]]:
    return provider_metadata.load_list(event, key, "content")


_SOURCES: tuple[
    tuple[str, Callable[[Event, str], Sequence[object]], Callable[[Members], Part]], ...
] = (
    (provider_metadata.OPENAI_CHAT, _chat_content, openai_part),
    (provider_metadata.OPENAI_RESPONSES, _kept_content, openai_part),
    (provider_metadata.ANTHROPIC_MESSAGES, _kept_content, anthropic_part),
    (provider_metadata.GEMINI_CONTENTS, _kept_content, gemini_part),
)
