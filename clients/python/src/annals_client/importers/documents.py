"""Finds the conversations in a file and says what each of them is."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from annals_client.errors import AnnalsClientError
from annals_client.importers.reader import JsonReader

Format = Literal["openai", "dialogue"]
FORMATS: tuple[Format, ...] = ("openai", "dialogue")
_NAMESPACE = uuid.UUID("5f0f3f0e-7d0c-5c7e-9a6e-3d1f0a1c2b44")


class ImportFileError(AnnalsClientError):
    """A file, or a conversation in it, cannot be imported."""


class JsonExportError(ImportFileError):
    """An export as JSON, which cannot come back as it was."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: is an export as JSON, which lacks branches and history; import takes JSON "
            "Lines exports: annals export CONVERSATION --format json-lines"
        )


@dataclass(frozen=True, slots=True)
class Document:
    """One conversation of a file, as decoded, and the identity its content gives it."""

    path: Path
    index: int
    format: Format
    content: Any
    conversation_id: str

    @property
    def place(self) -> str:
        """Names the conversation in messages."""
        return f"{self.path.name}, conversation {self.index + 1}"


def read_documents(
    path: Path, forced: Format | None = None, on_progress: Callable[[int], None] | None = None
) -> Iterator[Document]:
    """Yield the conversations of a file, one in memory at a time.

    The conversation id is a UUIDv5 of the content and of how often the file had the same
    content before: renaming the file or appending to it changes no id. `on_progress` is
    told the characters read. Raises ImportFileError.
    """
    seen: Counter[str] = Counter()
    try:
        with path.open(encoding="utf-8") as file:
            reader = JsonReader(file)
            for index, content in enumerate(_conversations(reader)):
                yield _document(path, index, content, seen, forced)
                if on_progress:
                    on_progress(reader.consumed_chars)
    except OSError as error:
        raise ImportFileError(f"{path}: {error.strerror}") from None
    except RecursionError:
        raise ImportFileError(f"{path}: is nested too deeply") from None
    except ValueError as error:
        raise ImportFileError(f"{path}: is not JSON: {error}") from None


def _document(
    path: Path, index: int, content: Any, seen: Counter[str], forced: Format | None
) -> Document:
    if _is_json_export(content):
        raise JsonExportError(path)
    found = forced or _format_of(content)
    if found is None:
        raise ImportFileError(
            f"{path}, conversation {index + 1}: is neither OpenAI messages nor a dialogue; "
            'expected an array of messages, {"messages": […]} or {"conversation": {…}}'
        )
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    seen[digest] += 1
    identity = uuid.uuid5(_NAMESPACE, f"{digest}:{seen[digest]}")
    return Document(path, index, found, content, str(identity))


def _conversations(reader: JsonReader) -> Iterator[Any]:
    while reader.peek():
        if reader.peek() == "[":
            yield from _of_array(reader.elements())
        else:
            yield reader.value()


def _of_array(elements: Iterator[Any]) -> Iterator[Any]:
    for first in elements:
        # An array of messages is one conversation; any other array holds conversations.
        if isinstance(first, dict) and "role" in first:
            yield [first, *elements]
        else:
            yield from chain([first], elements)


def _format_of(content: Any) -> Format | None:
    if isinstance(content, list):
        return "openai" if all(_is_message(item) for item in content) else None
    if not isinstance(content, dict):
        return None
    if isinstance(content.get("messages"), list):
        return "openai"
    inner = content.get("conversation", content)
    return "dialogue" if isinstance(inner, dict) and "speaker_a" in inner else None


def _is_json_export(content: Any) -> bool:
    """Tell whether `annals export --format json` wrote it."""
    if not isinstance(content, dict) or not isinstance(content.get("conversation"), dict):
        return False
    is_ours = content.keys() == {"conversation", "branch", "events", "memories"}
    return is_ours and "conversation_id" in content["conversation"]


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and "role" in item
